// hardware/software_stack.hpp - which framework runs on which platform, and what it requires.
//
// Rows of catalog/software.yaml and catalog/supply.yaml. A platform is a vendor's software under
// the framework (CUDA, ROCm, XLA for TPU, Neuron, SynapseAI, CPU).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

enum class Support { kSupported, kExperimental, kNo };

inline std::array<EnumWord<Support>, 3> enum_words(Support) {
  return {{{"supported", Support::kSupported},
           {"experimental", Support::kExperimental},
           {"no", Support::kNo}}};
}

enum class CompileStep { kNone, kJit, kAheadOfTime };

inline std::array<EnumWord<CompileStep>, 3> enum_words(CompileStep) {
  return {{{"none", CompileStep::kNone},
           {"jit", CompileStep::kJit},
           {"ahead-of-time", CompileStep::kAheadOfTime}}};
}

enum class FrameworkUse { kTraining, kInference, kBoth };

inline std::array<EnumWord<FrameworkUse>, 3> enum_words(FrameworkUse) {
  return {{{"training", FrameworkUse::kTraining},
           {"inference", FrameworkUse::kInference},
           {"both", FrameworkUse::kBoth}}};
}

struct Platform {
  std::string id;
  std::string name;
  std::vector<std::string> aliases;
  std::string vendor;
  CompileStep compile_step = CompileStep::kNone;
  std::string compile_note;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<Platform> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("id", p.id);
  visitor.required("name", p.name);
  visitor.optional("aliases", p.aliases);
  visitor.required("vendor", p.vendor);
  visitor.required("compile_step", p.compile_step);
  visitor.optional("compile_note", p.compile_note);
  describe_inline(visitor, p.provenance);
}

struct Framework {
  std::string id;
  std::string name;
  std::vector<std::string> aliases;
  FrameworkUse use = FrameworkUse::kBoth;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<Framework> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("id", f.id);
  visitor.required("name", f.name);
  visitor.optional("aliases", f.aliases);
  visitor.required("use", f.use);
  describe_inline(visitor, f.provenance);
}

/// One framework on one platform.
struct SoftwareStack {
  std::string framework;
  std::string platform;
  Support support = Support::kNo;
  std::optional<std::string> through;  ///< the package that makes it run
  CompileStep compile_step = CompileStep::kNone;
  std::optional<FrameworkUse>
      use;  ///< what it can be used for there; none: all that the framework can do
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<SoftwareStack> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("framework", s.framework);
  visitor.required("platform", s.platform);
  visitor.required("support", s.support);
  visitor.optional("through", s.through);
  visitor.optional("compile_step", s.compile_step);
  visitor.optional("use", s.use);
  describe_inline(visitor, s.provenance);
}

/// An accelerator to which its platform's row does not apply.
struct StackException {
  std::string accelerator;
  std::string framework;
  Support support = Support::kNo;
  std::optional<FrameworkUse> use;  ///< none: that of the platform's row
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<StackException> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.required("accelerator", e.accelerator);
  visitor.required("framework", e.framework);
  visitor.required("support", e.support);
  visitor.optional("use", e.use);
  describe_inline(visitor, e.provenance);
}

struct ExportClass {
  std::string id;
  std::string name;
  std::string meaning;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<ExportClass> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.required("id", e.id);
  visitor.required("name", e.name);
  visitor.required("meaning", e.meaning);
  describe_inline(visitor, e.provenance);
}

struct LeadTime {
  double low = 0;
  double typical = 0;
  double high = 0;
};

template <class Visitor, SameStruct<LeadTime> Self>
void describe(Visitor& visitor, Self& l) {
  visitor.required("low", l.low);
  visitor.required("typical", l.typical);
  visitor.required("high", l.high);
}

enum class Availability { kPurchase, kCloudOnly, kInternal, kDiscontinued };

inline std::array<EnumWord<Availability>, 4> enum_words(Availability) {
  return {{{"purchase", Availability::kPurchase},
           {"cloud-only", Availability::kCloudOnly},
           {"internal", Availability::kInternal},
           {"discontinued", Availability::kDiscontinued}}};
}

/// How an accelerator is obtained: its platform, lead time, export class.
struct Supply {
  std::string accelerator;
  std::string platform;
  std::optional<LeadTime> lead_time_weeks;
  Availability availability = Availability::kPurchase;
  std::string export_class;
  std::optional<double> tpp;  ///< total processing performance, dense TOPS x bit length
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<Supply> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("accelerator", s.accelerator);
  visitor.required("platform", s.platform);
  visitor.optional("lead_time_weeks", s.lead_time_weeks);
  visitor.required("availability", s.availability);
  visitor.required("export_class", s.export_class);
  visitor.optional("tpp", s.tpp);
  describe_inline(visitor, s.provenance);
}

}  // namespace orrery
