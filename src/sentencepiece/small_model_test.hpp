// sentencepiece/small_model_test.hpp - shared by the tests of pieces: headers of the C library,
// which are on every machine that compiles, and a small model made from them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/text/text_corpus.hpp"
#include "sentencepiece/piece_tokenizer.hpp"
#include "sentencepiece/piece_training.hpp"

namespace orrery {

template <class T>
T must_have(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *std::move(result);
}

inline std::vector<std::string> small_text() {
  return {"/usr/include/stdio.h", "/usr/include/stdlib.h", "/usr/include/string.h"};
}

inline constexpr std::int64_t kSmallKinds = 512;

/// A small model, made once per process.
inline const std::string& small_model() {
  static const std::string model =
      must_have(train_pieces(must_have(TextCorpus::open({.paths = small_text()})), kSmallKinds));
  return model;
}

/// A temporary directory that is removed at the end.
class DirectoryTest : public testing::Test {
 protected:
  DirectoryTest() {
    std::string name = std::filesystem::temp_directory_path() / "orrery_pieces_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name);
    root_ = name;
  }
  ~DirectoryTest() override { std::filesystem::remove_all(root_); }

  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return root_ / name;
  }

  std::filesystem::path root_;
};

}  // namespace orrery
