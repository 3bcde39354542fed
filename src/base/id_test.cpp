// base/id_test.cpp - ids of different things do not mix.
#include "base/id.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <unordered_set>

namespace orrery {
namespace {

using ShelfId = Id<struct ShelfTag>;
using BookId = Id<struct BookTag>;

static_assert(!std::convertible_to<ShelfId, BookId>);
static_assert(!std::constructible_from<BookId, ShelfId>);
static_assert(!std::convertible_to<int, ShelfId>, "a number becomes an id only in so many words");
static_assert(!std::equality_comparable_with<ShelfId, BookId>);

TEST(Id, IsInvalidUntilItNamesSomething) {
  EXPECT_FALSE(ShelfId().valid());
  EXPECT_TRUE(ShelfId(0).valid());
  EXPECT_TRUE(ShelfId::at(7).valid());
  EXPECT_EQ(ShelfId::at(7).value(), 7u);
}

TEST(Id, OrdersByPositionWithTheInvalidOneLast) {
  EXPECT_LT(ShelfId(1), ShelfId(2));
  EXPECT_LT(ShelfId(0xfffffffe), ShelfId());
}

TEST(Id, IsAKeyOfHashedSets) {
  const std::unordered_set<BookId> books = {BookId(1), BookId(2), BookId(1)};
  EXPECT_EQ(books.size(), 2u);
  EXPECT_TRUE(books.contains(BookId(2)));
}

}  // namespace
}  // namespace orrery
