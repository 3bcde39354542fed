// fleet/cow_array.hpp - an array one thread edits in place while others read snapshots of it.
//
// Items are stored in pages. A page records the generation in which it was made; editing an item
// whose page a published generation may still show copies that page first and retires the old one,
// which is reused once no live snapshot of the generations it belonged to is left. So an edit is a
// plain store most of the time, a snapshot costs 8 bytes per page, and readers take no lock and no
// reference count. Thread rule: edit, publish and collect by one thread; reading a directory taken
// by pages() is safe from any thread while its Generations::Lease lives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace orrery {

/// Counts published generations, and tracks which of them still have readers.
class Generations {
 public:
  /// Held by a snapshot; its generation stays readable until the last copy is gone.
  using Lease = std::shared_ptr<const std::uint64_t>;

  /// The generation that edits belong to now.
  [[nodiscard]] std::uint64_t current() const { return current_; }

  /// Makes the present state a generation to read, and starts the next.
  [[nodiscard]] Lease publish() {
    auto released = std::make_shared<std::atomic<bool>>(false);
    live_.push_back({current_, released});
    struct Reader {
      std::uint64_t generation;
      std::shared_ptr<std::atomic<bool>> released;
      ~Reader() { released->store(true, std::memory_order_release); }
    };
    auto reader = std::make_shared<Reader>(current_, std::move(released));
    ++current_;
    return {reader, &reader->generation};
  }

  /// Forgets generations without readers. O(live snapshots).
  void collect() {
    std::erase_if(live_,
                  [](const Live& live) { return live.released->load(std::memory_order_acquire); });
  }

  /// Whether a live snapshot shows a page born in `born` and replaced in `died`.
  [[nodiscard]] bool shown(std::uint64_t born, std::uint64_t died) const {
    for (const Live& live : live_) {
      if (live.generation >= born && live.generation < died) return true;
    }
    return false;
  }

 private:
  struct Live {
    std::uint64_t generation;
    std::shared_ptr<std::atomic<bool>> released;
  };
  std::uint64_t current_ = 0;
  std::vector<Live> live_;
};

/// `kPageItems` must be a power of two.
template <class T, std::size_t kPageItems>
class CowArray {
 public:
  static constexpr std::size_t kItemsPerPage = kPageItems;

  struct Page {
    std::uint64_t born = 0;
    alignas(64) std::array<T, kPageItems> items{};  ///< a cache line begins with an item
  };

  using Directory = std::shared_ptr<const std::vector<const Page*>>;

  explicit CowArray(std::size_t size) : size_(size) {
    for (std::size_t i = 0; i < page_count(size); ++i) directory_.push_back(&arena_.emplace_back());
  }

  [[nodiscard]] static std::size_t page_count(std::size_t size) {
    return (size + kPageItems - 1) / kPageItems;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Page* const* directory() const { return directory_.data(); }
  /// Returns the present directory, for a snapshot. O(pages), or O(1) if no page was replaced
  /// since.
  [[nodiscard]] Directory pages() {
    if (!published_)
      published_ =
          std::make_shared<const std::vector<const Page*>>(directory_.begin(), directory_.end());
    return published_;
  }

  [[nodiscard]] static const T& item(const Page* const* directory, std::size_t index) {
    return directory[index / kPageItems]->items[index % kPageItems];
  }
  [[nodiscard]] const T& operator[](std::size_t index) const {
    return item(directory_.data(), index);
  }

  /// Returns the item, in a page that no published generation shows. O(1), or a page copy after a
  /// publish.
  [[nodiscard]] T& edit(std::size_t index, const Generations& generations) {
    Page*& page = directory_[index / kPageItems];
    if (page->born < generations.current()) {
      Page* copy = replacement();
      copy->items = page->items;
      copy->born = generations.current();
      retired_.push_back({page, generations.current()});
      page = copy;
      published_.reset();
    }
    return page->items[index % kPageItems];
  }

  /// Reclaims retired pages that no live snapshot shows. O(retired x live snapshots).
  void collect(const Generations& generations) {
    std::erase_if(retired_, [&](const Retired& retired) {
      if (generations.shown(retired.page->born, retired.died)) return false;
      unused_.push_back(retired.page);
      return true;
    });
  }

 private:
  struct Retired {
    Page* page;
    std::uint64_t died;
  };

  Page* replacement() {
    if (unused_.empty()) return &arena_.emplace_back();
    Page* page = unused_.back();
    unused_.pop_back();
    return page;
  }

  std::size_t size_;
  std::deque<Page> arena_;  ///< never moves what it holds
  std::vector<Page*> directory_;
  Directory published_;  ///< null when it no longer equals directory_
  std::vector<Retired> retired_;
  std::vector<Page*> unused_;
};

/// A CowArray as it would be after some edits: a separate directory over the pages of a base, and
/// copies of the edited pages. The base must outlive it, stay in place and not change between a
/// reset and the next. Cost: 8 bytes per page, and a page copy for the first edit of each page.
template <class Array>
class CowOverlay {
 public:
  using Page = typename Array::Page;

  /// Shows `base`, of `size` items, without edits; pages copied before are kept for reuse.
  /// O(pages).
  void reset(const Page* const* base, std::size_t size) {
    const std::size_t pages = Array::page_count(size);
    directory_.assign(base, base + pages);
    for (const std::size_t page : edited_) own_[page] = nullptr;
    edited_.clear();
    own_.resize(pages);
  }

  [[nodiscard]] const Page* const* directory() const { return directory_.data(); }

  [[nodiscard]] auto& edit(std::size_t index) {
    const std::size_t at = index / Array::kItemsPerPage;
    if (own_[at] == nullptr) adopt(at);
    return own_[at]->items[index % Array::kItemsPerPage];
  }

 private:
  void adopt(std::size_t page) {
    if (edited_.size() == arena_.size()) arena_.emplace_back();
    own_[page] = &arena_[edited_.size()];
    edited_.push_back(page);
    own_[page]->items = directory_[page]->items;
    directory_[page] = own_[page];
  }

  std::vector<const Page*> directory_;
  std::vector<Page*> own_;           ///< by page; null while the base's page is shown
  std::vector<std::size_t> edited_;  ///< page i of the arena replaces page edited_[i]
  std::deque<Page> arena_;           ///< never moves what it holds
};

}  // namespace orrery
