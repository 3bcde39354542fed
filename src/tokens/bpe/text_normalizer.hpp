// tokens/bpe/text_normalizer.hpp - the normalizer of a tokenizer.json: what is done to a text
// before it is divided into words.
//
// Made while a tokenizer is loaded; movable, immutable, safe from every thread. Invariant: the
// result is the reference library's for UTF-8; bytes that are not UTF-8 stay as they are. Cost:
// O(n) for each step; normal forms cost nothing for ASCII.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/bpe/json_part.hpp"

namespace orrery {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  /// Returns the result: `text` itself if nothing changes, else `buffer`, which is then written.
  /// The text does not lie in the buffer.
  [[nodiscard]] virtual std::string_view apply(std::string_view text,
                                               std::string& buffer) const = 0;
};

class TextNormalizer {
 public:
  /// Reads "normalizer", which may be absent or null. Throws LoadFault.
  explicit TextNormalizer(const JsonPart& file);
  /// As NormalizerStep::apply.
  [[nodiscard]] std::string_view apply(std::string_view text, std::string& buffer) const;

 private:
  void read(const JsonPart& part, int depth);

  std::vector<std::unique_ptr<const NormalizerStep>> steps_;
};

}  // namespace orrery
