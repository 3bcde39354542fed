#include "gateway/request_facts.hpp"

#include <simdjson.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format/xxh3.hpp"

namespace orrery {
namespace {

namespace ondemand = simdjson::ondemand;

/// "line 3, column 7", from 1, of a byte of a text.
std::string place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 == 0
  return fmt::format("line {}, column {}", lines + 1, before.size() - line_begin + 1);
}

RequestFault malformed(std::string_view text, std::size_t at, simdjson::error_code failure) {
  return {fmt::format("The body is not a JSON object: {} at {}.", simdjson::error_message(failure),
                      place_of(text, at))};
}

RequestFault wrong_type(const char* param, std::string_view expected) {
  return {fmt::format("'{}' must be {}.", param, expected), param};
}

/// What is read of a text, and where the text begins.
struct FactsOfText {
  const char* begin;
  RequestFacts facts;
};

/// A fault, or nothing.
using Fault = std::optional<RequestFault>;

/// Whether a value is null, which stands for an absent one.
bool is_null(ondemand::value& value) {
  ondemand::json_type type{};
  return value.type().get(type) == simdjson::SUCCESS && type == ondemand::json_type::null;
}

Fault read_truth(ondemand::value value, const char* param, bool& out) {
  if (is_null(value)) return {};
  if (value.get_bool().get(out) != simdjson::SUCCESS) return wrong_type(param, "true or false");
  return {};
}

Fault read_count(ondemand::value value, const char* param, std::uint64_t& out) {
  if (is_null(value)) return {};
  if (value.get_uint64().get(out) != simdjson::SUCCESS) {
    return wrong_type(param, "a whole number that is not negative");
  }
  return {};
}

/// Whether the value of a key of RequestFacts::needs_one_replica asks for it.
bool asks_for_more(std::string_view key, ondemand::value value) {
  if (is_null(value)) return false;
  if (key == "prompt_logprobs") return true;
  bool truth = false;
  double number = 0;
  if (value.get_bool().get(truth) == simdjson::SUCCESS) return truth;
  return value.get_double().get(number) == simdjson::SUCCESS && number > 1;
}

Fault read_stream_options(ondemand::value value, RequestFacts& facts) {
  if (is_null(value)) return {};
  ondemand::object options;
  if (value.get_object().get(options) != simdjson::SUCCESS) {
    return wrong_type("stream_options", "an object");
  }
  ondemand::value usage;
  if (options["include_usage"].get(usage) != simdjson::SUCCESS) return {};
  return read_truth(usage, "stream_options", facts.include_usage);
}

Fault read_tier(ondemand::value value, RequestFacts& facts) {
  if (is_null(value)) return {};
  std::string_view tier;
  if (value.get_string().get(tier) != simdjson::SUCCESS)
    return wrong_type("service_tier", "a text");
  facts.service_class = tier == "flex" ? ServiceClass::kBatch : ServiceClass::kInteractive;
  return {};
}

/// The text of a list, an object or a text as it stands in the body; of others, and of what is
/// malformed, none.
std::string_view text_of(ondemand::value& value) {
  ondemand::json_type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return {};
  std::string_view text;
  if (type == ondemand::json_type::array) {
    ondemand::array list;
    const bool is_list = value.get_array().get(list) == simdjson::SUCCESS;
    return is_list && list.raw_json().get(text) == simdjson::SUCCESS ? text : std::string_view();
  }
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    const bool is_object = value.get_object().get(object) == simdjson::SUCCESS;
    return is_object && object.raw_json().get(text) == simdjson::SUCCESS ? text
                                                                         : std::string_view();
  }
  if (type != ondemand::json_type::string) return {};
  text = value.raw_json_token();
  return text.substr(0, text.rfind('"') + 1);
}

void read_prompt(std::string_view key, ondemand::value value, FactsOfText& read) {
  const std::string_view text = text_of(value);
  PromptPlace& prompt = read.facts.prompt;
  if (key == "messages" || key == "prompt") {
    if (text.empty()) return;
    prompt.at = static_cast<std::size_t>(text.data() - read.begin);
    prompt.size = text.size();
  } else {
    prompt.salt ^= xxh3(text, xxh3(key));
  }
}

Fault read_field(std::string_view key, ondemand::value value, FactsOfText& read) {
  RequestFacts& facts = read.facts;
  if (key == "model") {
    std::string_view model;
    if (value.get_string().get(model) != simdjson::SUCCESS) return wrong_type("model", "a text");
    facts.model = model;
    return {};
  }
  if (key == "stream") {
    bool stream = false;
    Fault fault = read_truth(value, "stream", stream);
    facts.form = stream ? AnswerForm::kStream : AnswerForm::kWhole;
    return fault;
  }
  if (key == "max_tokens" && facts.output_tokens_max == 0) {
    return read_count(value, "max_tokens", facts.output_tokens_max);
  }
  if (key == "max_completion_tokens") {
    return read_count(value, "max_completion_tokens", facts.output_tokens_max);
  }
  if (key == "stream_options") return read_stream_options(value, facts);
  if (key == "service_tier") return read_tier(value, facts);
  if (key == "n" || key == "best_of" || key == "use_beam_search" || key == "echo" ||
      key == "prompt_logprobs") {
    facts.needs_one_replica = asks_for_more(key, value) || facts.needs_one_replica;
  }
  if (key == "messages" || key == "prompt" || key == "tools" || key == "cache_salt") {
    read_prompt(key, value, read);
  }
  return {};
}

}  // namespace

struct RequestReader::Impl {
  ondemand::parser parser;
};

RequestReader::RequestReader() : impl_(std::make_unique<Impl>()) {}

RequestReader::~RequestReader() = default;

tl::expected<RequestFacts, RequestFault> RequestReader::read(const std::string& body) {
  // simdjson reads whole vectors, beyond the end; a body that has no such memory behind it is
  // copied.
  std::optional<simdjson::padded_string> copied;
  simdjson::padded_string_view text(body.data(), body.size(), body.capacity());
  if (body.capacity() < body.size() + simdjson::SIMDJSON_PADDING) {
    text = copied.emplace(body.data(), body.size());
  }
  const char* const begin = text.data();
  ondemand::document document;
  const auto fail = [&](simdjson::error_code failure) {
    const char* at = nullptr;
    const bool known = document.is_alive() &&
                       document.current_location().get(at) == simdjson::SUCCESS && at >= begin &&
                       at <= begin + body.size();
    return tl::unexpected(
        malformed(body, known ? static_cast<std::size_t>(at - begin) : body.size(), failure));
  };
  if (auto failure = impl_->parser.iterate(text).get(document)) return fail(failure);
  ondemand::object object;
  if (auto failure = document.get_object().get(object)) return fail(failure);
  FactsOfText read{begin, {}};
  for (auto each : object) {
    ondemand::field field;
    if (auto failure = std::move(each).get(field)) return fail(failure);
    std::string_view key;
    if (auto failure = field.unescaped_key().get(key)) return fail(failure);
    if (Fault fault = read_field(key, field.value(), read)) {
      return tl::unexpected(*std::move(fault));
    }
  }
  const char* behind = nullptr;
  if (document.current_location().get(behind) == simdjson::SUCCESS) {
    return fail(simdjson::TAPE_ERROR);
  }
  if (read.facts.model.empty()) {
    return tl::unexpected(RequestFault{"The body must name a model in 'model'.", "model"});
  }
  return std::move(read.facts);
}

}  // namespace orrery
