#include "inference/formats/weight_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kNameShown = 120;

std::string shown(const StoredTensor& tensor) {
  return fmt::format("tensor \"{}\"", printable(tensor.name, kNameShown));
}

Status check_tensor(const ParameterTensor& wanted, const StoredTensor& stored) {
  const bool fits = std::ranges::equal(stored.shape, wanted.shape, [](auto a, auto b) {
    return a == static_cast<std::uint64_t>(b);
  });
  if (!fits) {
    return input_error({stored.place},
                       fmt::format("{} is {}, expected {}", shown(stored),
                                   fmt::join(stored.shape, " x "), fmt::join(wanted.shape, " x ")));
  }
  if (stored.encoding) return {};
  return input_error({stored.place}, fmt::format("{} has the type {}, expected weights",
                                                 shown(stored), stored.type));
}

Status check_finite(const StoredTensor& stored, std::span<const float> weights) {
  const auto bad =
      std::ranges::find_if(weights, [](float weight) { return !std::isfinite(weight); });
  if (bad == weights.end()) return {};
  return input_error({stored.place}, fmt::format("{}: weight {} is {}, expected a finite number",
                                                 shown(stored), bad - weights.begin(), *bad));
}

using TensorIndex = std::unordered_map<std::string_view, std::size_t>;

Status check_no_others(std::span<const StoredTensor> tensors, const TensorIndex& others,
                       const TensorNaming& naming) {
  for (const StoredTensor& tensor : tensors) {
    if (!others.contains(tensor.name) || naming.ignored(tensor.name)) continue;
    return input_error(
        {tensor.place},
        fmt::format("{} is no part of the model that its configuration describes", shown(tensor)));
  }
  return {};
}

}  // namespace

Result<AlignedFloats> read_parameters(const ParameterLayout& layout, WeightSource& source,
                                      const TensorNaming& naming) {
  const std::span<const StoredTensor> tensors = source.tensors();
  TensorIndex left;
  for (std::size_t i = 0; i < tensors.size(); ++i) left.emplace(tensors[i].name, i);
  // All tensors are checked before memory is taken for them.
  std::vector<std::size_t> places;
  for (const ParameterTensor& wanted : layout.tensors()) {
    const std::string name = naming.stored(wanted.name);
    const auto found = left.find(name);
    if (found == left.end()) {
      const std::string place = tensors.empty() ? "the file" : tensors.front().place;
      return input_error({place}, fmt::format("there is no tensor \"{}\", expected one of {}", name,
                                              fmt::join(wanted.shape, " x ")));
    }
    places.push_back(found->second);
    left.erase(found);
    if (Status good = check_tensor(wanted, tensors[places.back()]); !good) {
      return forward_error(good);
    }
  }
  if (Status good = check_no_others(tensors, left, naming); !good) return forward_error(good);
  AlignedFloats parameters(layout.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ParameterTensor& wanted = layout.tensors()[i];
    const std::span<float> to = std::span(parameters).subspan(wanted.begin, wanted.size);
    if (Status read = source.read(places[i], to); !read) return forward_error(read);
    if (Status good = check_finite(tensors[places[i]], to); !good) return forward_error(good);
  }
  return parameters;
}

std::string main_encoding(const WeightSource& source) {
  std::array<double, 16> weights{};
  std::size_t main = 0;
  for (const StoredTensor& tensor : source.tensors()) {
    if (!tensor.encoding) continue;
    double count = 1;
    for (const std::uint64_t extent : tensor.shape) count *= static_cast<double>(extent);
    const auto place = static_cast<std::size_t>(*tensor.encoding);
    weights[place] += count;
    if (weights[place] > weights[main]) main = place;
  }
  return std::string(block_of(static_cast<TensorEncoding>(main)).name);
}

}  // namespace orrery
