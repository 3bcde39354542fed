// The checks that all backends share.
#include "store/store.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string complaint(std::uint64_t held, std::uint64_t given) {
  const StorageStatus status = check_term("db", {StoreTerm{held}, StoreTerm{given}});
  return status ? "" : status.error().message;
}

TEST(CheckTerm, SaysWhyAWriterMayWriteNoMore) {
  EXPECT_EQ(complaint(3, 3), "");
  EXPECT_EQ(complaint(4, 3), "db: the writer of term 3 may write no more: term 4 was claimed");
  EXPECT_EQ(complaint(0, 3),
            "db: the writer of term 3 may write no more: no term was claimed here: the store was "
            "emptied, or is another one");
  EXPECT_EQ(complaint(2, 3),
            "db: the writer of term 3 may write no more: the newest claim here is of term 2: the "
            "store was restored from a backup, or is another one");
  EXPECT_NE(complaint(0, 0), "") << "nothing is written before a claim";
}

}  // namespace
}  // namespace orrery
