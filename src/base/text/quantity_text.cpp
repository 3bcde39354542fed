#include "base/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

struct Prefix {
  std::string_view text;
  double factor;
};

constexpr std::array<Prefix, 7> kLargePrefixes = {
    {{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}}};
constexpr std::array<Prefix, 6> kBinaryPrefixes = {{{"Ki", 0x1p10},
                                                    {"Mi", 0x1p20},
                                                    {"Gi", 0x1p30},
                                                    {"Ti", 0x1p40},
                                                    {"Pi", 0x1p50},
                                                    {"Ei", 0x1p60}}};
constexpr std::array<Prefix, 3> kSmallPrefixes = {{{"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}}};
// Counts are written in thousands, millions, billions and trillions.
constexpr std::array<Prefix, 6> kCountPrefixes = {
    {{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}}};

constexpr std::array<UnitSymbol, 1> kBytes = {{{"B", 1, Prefixes::kLargeAndBinary}}};
constexpr std::array<UnitSymbol, 3> kBandwidth = {{{"B/s", 1, Prefixes::kLargeAndBinary},
                                                   {"b/s", 0.125, Prefixes::kLarge},
                                                   {"bps", 0.125, Prefixes::kLarge}}};
constexpr std::array<UnitSymbol, 2> kFlops = {
    {{"FLOP", 1, Prefixes::kLarge}, {"FLOPs", 1, Prefixes::kLarge}}};
constexpr std::array<UnitSymbol, 5> kFlopRate = {{{"FLOP/s", 1, Prefixes::kLarge},
                                                  {"FLOPS", 1, Prefixes::kLarge},
                                                  {"FLOPs/s", 1, Prefixes::kLarge},
                                                  {"OP/s", 1, Prefixes::kLarge},
                                                  {"OPS", 1, Prefixes::kLarge}}};
constexpr std::array<UnitSymbol, 8> kTime = {{{"s", 1, Prefixes::kSmall},
                                              {"min", 60, Prefixes::kNone},
                                              {"h", 3600, Prefixes::kNone},
                                              {"d", 86400, Prefixes::kNone},
                                              {"day", 86400, Prefixes::kNone},
                                              {"days", 86400, Prefixes::kNone},
                                              {"week", 604800, Prefixes::kNone},
                                              {"weeks", 604800, Prefixes::kNone}}};
constexpr std::array<UnitSymbol, 1> kPower = {{{"W", 1, Prefixes::kLarge}}};
constexpr std::array<UnitSymbol, 2> kEnergy = {
    {{"Wh", 3600, Prefixes::kLarge}, {"J", 1, Prefixes::kLarge}}};
constexpr std::array<UnitSymbol, 2> kMoney = {
    {{"$", 1, Prefixes::kCount}, {"USD", 1, Prefixes::kCount}}};
constexpr std::array<UnitSymbol, 2> kMoneyRate = {
    {{"$/h", 1.0 / 3600, Prefixes::kNone}, {"USD/h", 1.0 / 3600, Prefixes::kNone}}};
constexpr std::array<UnitSymbol, 2> kEnergyPrice = {
    {{"$/kWh", 1 / 3.6e6, Prefixes::kNone}, {"$/MWh", 1 / 3.6e9, Prefixes::kNone}}};
constexpr std::array<UnitSymbol, 3> kBytePrice = {{{"$/GB", 1e-9, Prefixes::kNone},
                                                   {"$/TB", 1e-12, Prefixes::kNone},
                                                   {"$/GiB", 0x1p-30, Prefixes::kNone}}};
constexpr std::array<UnitSymbol, 2> kCarbon = {
    {{"g", 1, Prefixes::kLarge}, {"t", 1e6, Prefixes::kLarge}}};
constexpr std::array<UnitSymbol, 2> kCarbonIntensity = {
    {{"g/kWh", 1 / 3.6e6, Prefixes::kNone}, {"kg/MWh", 1e3 / 3.6e9, Prefixes::kNone}}};
constexpr std::array<UnitSymbol, 2> kTokens = {
    {{"tokens", 1, Prefixes::kCount}, {"token", 1, Prefixes::kCount}}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool allows(Prefixes prefixes, std::string_view text, double& factor) {
  const auto find = [&](auto& table) {
    for (const Prefix& prefix : table) {
      if (prefix.text != text) continue;
      factor = prefix.factor;
      return true;
    }
    return false;
  };
  if (text.empty()) {
    factor = 1;
    return true;
  }
  switch (prefixes) {
    case Prefixes::kNone:
      return false;
    case Prefixes::kLarge:
      return find(kLargePrefixes);
    case Prefixes::kSmall:
      return find(kSmallPrefixes);
    case Prefixes::kLargeAndBinary:
      return find(kLargePrefixes) || find(kBinaryPrefixes);
    case Prefixes::kCount:
      return find(kCountPrefixes);
  }
  return false;
}

// The factor of a written unit ("Gb/s", "T tokens"), when it is one of the kind's.
std::optional<double> unit_factor(std::string_view written, const QuantityKind& kind) {
  for (const UnitSymbol& unit : kind.units) {
    if (!written.ends_with(unit.symbol)) continue;
    double prefix = 1;
    const std::string_view before = trimmed(written.substr(0, written.size() - unit.symbol.size()));
    if (allows(unit.prefixes, before, prefix)) return prefix * unit.factor;
  }
  return std::nullopt;
}

std::string expected(const QuantityKind& kind) {
  return fmt::format("expected a {} such as \"{}\"", kind.name, kind.example);
}

// "$2.50/h" is read as "2.50 $/h", "$3M" as "3 M$", "$1,234" as "1234 $".
std::string dollars_behind(std::string_view text) {
  const auto digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::size_t end = 1;
  std::string number;
  for (; end < text.size() && std::string_view("+-0123456789.eE, ").find(text[end]) != text.npos;
       ++end) {
    const bool separates = text[end] == ',' && digit(end - 1) && digit(end + 1) && digit(end + 2) &&
                           digit(end + 3) && !digit(end + 4);
    if (!separates) number += text[end];
  }
  const std::string_view rest = trimmed(text.substr(end));
  return rest.starts_with('/') ? fmt::format("{} ${}", number, rest)
                               : fmt::format("{} {}$", number, rest);
}

struct Scale {
  double factor;
  std::string_view prefix;
};

Scale scale_of(double magnitude, std::span<const Prefix> prefixes) {
  Scale best{1, ""};
  for (const Prefix& prefix : prefixes) {
    if (prefix.factor == best.factor) continue;  // k before K, B before G: the first is printed
    // 999.95 and more would print as "1000" of the smaller unit.
    if (magnitude >= prefix.factor * 0.99995) best = {prefix.factor, prefix.text};
  }
  return best;
}

Scale printing_scale(double magnitude, const UnitSymbol& unit) {
  switch (unit.prefixes) {
    case Prefixes::kNone:
      return {1, ""};
    case Prefixes::kLarge:
      return scale_of(magnitude, kLargePrefixes);
    case Prefixes::kSmall: {
      constexpr std::array<Prefix, 3> kAscending = {{{"n", 1e-9}, {"u", 1e-6}, {"m", 1e-3}}};
      const Scale small = scale_of(magnitude, kAscending);
      return magnitude >= 0.99995 || magnitude == 0 ? Scale{1, ""} : small;
    }
    case Prefixes::kLargeAndBinary: {
      // Memory comes in powers of two, disks and links in powers of ten: print what divides.
      const Scale binary = scale_of(magnitude, kBinaryPrefixes);
      const double eighths = magnitude / binary.factor * 8;
      if (unit.symbol == "B" && binary.factor > 1 && eighths == std::floor(eighths)) return binary;
      return scale_of(magnitude, kLargePrefixes);
    }
    case Prefixes::kCount:
      return scale_of(magnitude, kCountPrefixes);
  }
  return {1, ""};
}

std::string digits(double value) { return fmt::format("{:.4g}", value); }

std::string print_seconds(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 2 * 86400) return digits(value / 86400) + " d";
  if (magnitude >= 2 * 3600) return digits(value / 3600) + " h";
  if (magnitude >= 120) return digits(value / 60) + " min";
  const Scale scale = printing_scale(magnitude, kTime[0]);
  return fmt::format("{} {}s", digits(value / scale.factor), scale.prefix);
}

std::string print_dollars(double value, std::string_view per) {
  const double magnitude = std::abs(value);
  const std::string_view sign = value < 0 ? "-" : "";
  const Scale scale = per.empty() ? scale_of(magnitude, kCountPrefixes) : Scale{1, ""};
  if (scale.factor > 1) {
    return fmt::format("{}${}{}", sign, digits(magnitude / scale.factor), scale.prefix);
  }
  if (magnitude >= 1000) return fmt::format("{}${}{}", sign, print_count(magnitude), per);
  if (magnitude >= 1) {
    std::string cents = fmt::format("{:.3f}", magnitude);
    if (magnitude >= 10 || cents.back() == '0') cents = fmt::format("{:.2f}", magnitude);
    return fmt::format("{}${}{}", sign, cents, per);
  }
  return fmt::format("{}${}{}", sign, digits(magnitude), per);
}

std::optional<double> number_at_front(std::string_view& text) {
  double number = 0;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (failure != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// "00:05:00" (hours, minutes, seconds) and "1-12:00:00" (with days), as Slurm writes them.
std::optional<double> clock_seconds(std::string_view text) {
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != text.npos && dash > 0) {
    std::string_view front = text.substr(0, dash);
    const std::optional<double> number = number_at_front(front);
    if (!number || !front.empty()) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  for (int part = 0; part < 3; ++part) {
    if (text.empty()) return std::nullopt;
    const std::optional<double> number = number_at_front(text);
    if (!number || (part > 0 && *number >= 60)) return std::nullopt;
    seconds = seconds * 60 + *number;
    if (part < 2 && !text.starts_with(':')) return std::nullopt;
    if (part < 2) text.remove_prefix(1);
  }
  return text.empty() ? std::optional(days * 86'400 + seconds) : std::nullopt;
}

/// "90m", "1h30m", "2 days 3 hours": numbers, each with a unit, the larger units first.
std::optional<double> compound_seconds(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"s", 1},          {"sec", 1},        {"second", 1},   {"seconds", 1},   {"m", 60},
      {"min", 60},       {"minute", 60},    {"minutes", 60}, {"h", 3'600},     {"hour", 3'600},
      {"hours", 3'600},  {"d", 86'400},     {"day", 86'400}, {"days", 86'400}, {"w", 604'800},
      {"week", 604'800}, {"weeks", 604'800}};
  double seconds = 0;
  double larger = std::numeric_limits<double>::infinity();
  while (!text.empty()) {
    const std::optional<double> number = number_at_front(text);
    if (!number) return std::nullopt;
    text = trimmed(text);
    std::size_t length = 0;
    while (length < text.size() && text[length] >= 'a' && text[length] <= 'z') ++length;
    const std::string_view word = text.substr(0, length);
    const auto* unit = std::ranges::find(kUnits, word, [](const auto& each) { return each.first; });
    if (unit == std::end(kUnits) || unit->second >= larger) return std::nullopt;
    seconds += *number * unit->second;
    larger = unit->second;
    text = trimmed(text.substr(length));
  }
  return seconds;
}

}  // namespace

Status check_plausible(double value, const QuantityKind& kind) {
  if (!std::isfinite(value)) {
    return input_error({},
                       fmt::format("the {} is not a finite number; {}", kind.name, expected(kind)));
  }
  if (value < 0) {
    return input_error(
        {}, fmt::format("{} is negative; {}", print_quantity(value, kind), expected(kind)));
  }
  if (value > kind.plausible_max) {
    return input_error(
        {}, fmt::format("{} is more than any {} can be (at most {})", print_quantity(value, kind),
                        kind.name, print_quantity(kind.plausible_max, kind)));
  }
  return {};
}

Result<double> parse_quantity(std::string_view text, const QuantityKind& kind) {
  const std::string shown = printable(trimmed(text), 60);
  std::string_view rest = trimmed(text);
  if (kind.units.front().symbol == "s" && !rest.empty()) {
    std::optional<double> seconds = clock_seconds(rest);
    if (!seconds) seconds = compound_seconds(rest);
    if (seconds) return check_plausible(*seconds, kind).map([&] { return *seconds; });
  }
  std::string turned;
  if (rest.starts_with('$')) {
    turned = dollars_behind(rest);
    rest = trimmed(turned);
  }
  double number = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (failure == std::errc::result_out_of_range) {
    return input_error({}, fmt::format("\"{}\" is out of range; {}", shown, expected(kind)));
  }
  if (failure != std::errc()) {
    return input_error({}, fmt::format("\"{}\" is not a {}; {}", shown, kind.name, expected(kind)));
  }
  const std::string_view unit = trimmed(rest.substr(static_cast<std::size_t>(end - rest.data())));
  if (unit.empty()) {
    return input_error({}, fmt::format("\"{}\" has no unit; {}", shown, expected(kind)));
  }
  const std::optional<double> factor = unit_factor(unit, kind);
  if (!factor) {
    return input_error({}, fmt::format("\"{}\" has the unknown unit \"{}\"; {}", shown,
                                       printable(unit, 60), expected(kind)));
  }
  const double value = number * *factor;
  if (Status plausible = check_plausible(value, kind); !plausible) return forward_error(plausible);
  return value;
}

std::string print_quantity(double value, const QuantityKind& kind) {
  const UnitSymbol& unit = kind.units.front();
  if (unit.symbol == "s") return print_seconds(value);
  if (unit.symbol.starts_with('$')) {
    return print_dollars(value / unit.factor, unit.symbol.substr(1));
  }
  const double in_unit = value / unit.factor;
  const Scale scale = printing_scale(std::abs(in_unit), unit);
  const std::string number = digits(in_unit / scale.factor);
  if (unit.prefixes == Prefixes::kCount) {
    return fmt::format("{}{} {}", number, scale.prefix, unit.symbol);
  }
  return fmt::format("{} {}{}", number, scale.prefix, unit.symbol);
}

// Four digits where they are the value, else one digit less than a double has: the rounding of
// the unit's factor stays invisible.
std::string print_exact(double value, const QuantityKind& kind) {
  std::string shown = print_quantity(value, kind);
  const Result<double> back = parse_quantity(shown, kind);
  if (back && std::abs(*back - value) <= 1e-12 * std::abs(value)) return shown;
  const UnitSymbol& unit = kind.units.front();
  const std::string number = fmt::format("{:.15g}", value / unit.factor);
  if (unit.symbol.starts_with('$')) return fmt::format("${}{}", number, unit.symbol.substr(1));
  return fmt::format("{} {}", number, unit.symbol);
}

std::string print_count(double count) {
  std::string plain = fmt::format("{:.0f}", count);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(plain.size()) - 3;
       at > (plain.front() == '-' ? 1 : 0); at -= 3) {
    plain.insert(static_cast<std::size_t>(at), ",");
  }
  return plain;
}

// The plausible maxima are far above anything built or published, and far below what would
// overflow the sums of a fleet of a million accelerators.
#define ORRERY_QUANTITY_KIND(Type, name, example, units, plausible_max)       \
  template <>                                                                 \
  const QuantityKind& kind_of<Type>() {                                       \
    static constexpr QuantityKind kKind{name, example, units, plausible_max}; \
    return kKind;                                                             \
  }

ORRERY_QUANTITY_KIND(Bytes, "size", "80 GiB", kBytes, 1e22)
ORRERY_QUANTITY_KIND(Flops, "number of operations", "3.1e24 FLOP", kFlops, 1e32)
ORRERY_QUANTITY_KIND(Seconds, "time", "1.5 h", kTime, 1e10)
ORRERY_QUANTITY_KIND(Joules, "energy", "250 kWh", kEnergy, 1e20)
ORRERY_QUANTITY_KIND(Dollars, "sum of money", "$30000", kMoney, 1e14)
ORRERY_QUANTITY_KIND(GramsCo2, "mass of CO2", "150 kg", kCarbon, 1e18)
ORRERY_QUANTITY_KIND(Tokens, "number of tokens", "2T tokens", kTokens, 1e18)
ORRERY_QUANTITY_KIND(BytesPerSecond, "bandwidth", "400 Gb/s", kBandwidth, 1e18)
ORRERY_QUANTITY_KIND(FlopsPerSecond, "rate of operations", "989 TFLOP/s", kFlopRate, 1e24)
ORRERY_QUANTITY_KIND(Watts, "power", "12 MW", kPower, 1e12)
ORRERY_QUANTITY_KIND(DollarsPerSecond, "price per hour", "$2.50/h", kMoneyRate, 1e10)
ORRERY_QUANTITY_KIND(DollarsPerJoule, "price of energy", "$0.08/kWh", kEnergyPrice, 1e-3)
ORRERY_QUANTITY_KIND(DollarsPerByte, "price of traffic", "$0.02/GB", kBytePrice, 1e-5)
ORRERY_QUANTITY_KIND(GramsCo2PerJoule, "carbon intensity", "350 g/kWh", kCarbonIntensity, 1e-2)

#undef ORRERY_QUANTITY_KIND

}  // namespace orrery
