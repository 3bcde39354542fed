// node/launch/tree_removal.hpp - removes directory trees that a job may have filled, in small
// pieces.
//
// The agent is root and the tree is a user's, so no path is looked up twice: each step is taken
// from an open directory and follows no link. However deep the tree is, a few directories are open
// at a time.
#pragma once

#include <string>

namespace orrery {

/// One bounded piece of work.
class TreeRemoval {
 public:
  explicit TreeRemoval(int entries_max) : left_(entries_max) {}

  /// Removes what is at the path and all below it. Returns whether all that can be removed is;
  /// false: there is more to do, in another piece.
  bool remove(const std::string& path);
  [[nodiscard]] int removed() const { return removed_; }

 private:
  struct Level;

  bool empty(const Level& level);
  bool remove_entry(const Level& level, const std::string& name);
  void move_to_top(const Level& level, const std::string& name);
  void unlink(int directory, const std::string& name, int flags);

  int left_;
  int removed_ = 0;
  int moved_ = 0;  ///< directories that were too deep and now lie at the top
};

}  // namespace orrery
