// What users write reaches terminals and pages of others: every verb that shows a cluster is given
// every hostile text in every field, every page is made of hostile names.
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "api/fake_controller_test.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/utf8.hpp"
#include "orrery/v1/orrery.pb.h"
#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Hostile {
  const char* name;
  std::string text;
};

std::vector<Hostile> corpus() {
  return {
      {"title and colour", "/no/\x1b]0;pwned\a\x1b[31msuch"},
      {"clipboard", "a\x1b]52;c;cm0gLXJmIC8K\ab"},
      {"cursor", "a\x1b[2J\x1b[1;1H\x1b[8mhidden"},
      {"C1",
       "a\xC2\x9B"
       "31m\xC2\x9D"
       "0;x\xC2\x9C"},
      {"bidirectional", "a\u202Egnp.exe\u2066\u200F\u061C"},
      {"lines", "a\nroot is drained\r\tb\u2028c\u2029d\v\f"},
      {"backspace", "safe\b\b\b\bevil\x7F"},
      {"long", std::string(20'000, 'x') + "\x1b[31m"},
      {"markup", "<script>alert(1)</script>\"><img src=x onerror=alert(1)>'javascript:alert(1)"}};
}

/// Writes the text into every field of the message and of nested messages, and sets numbers that
/// are not 0.
void fill(Message& message, const std::string& text) {
  const auto& type = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const bool many = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        many ? reflection.AddString(&message, field, text)
             : reflection.SetString(&message, field, text);
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        fill(*(many ? reflection.AddMessage(&message, field)
                    : reflection.MutableMessage(&message, field)),
             text);
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        many ? reflection.AddUInt32(&message, field, 1) : reflection.SetUInt32(&message, field, 1);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        many ? reflection.AddUInt64(&message, field, 1) : reflection.SetUInt64(&message, field, 1);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        many ? reflection.AddDouble(&message, field, 1) : reflection.SetDouble(&message, field, 1);
        break;
      default:
        break;
    }
  }
}

/// The first control character of `text` for a terminal, with its surroundings; "": none.
std::string obeyed(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool lead = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (text[at] == '\n' || !lead) continue;
    if (control_length(text, at) == 0) continue;
    const std::size_t from = at - std::min<std::size_t>(at, 30);
    return terminal_text(text.substr(from, 60), Newlines::kEscaped);
  }
  return first_invalid_utf8(text) == std::string::npos ? "" : "not UTF-8";
}

/// Verbs that show the answers of a controller, with their methods.
struct Shown {
  const char* arguments;
  const char* method;
};
const Shown kShown[] = {
    {"jobs -a", "ListJobs"},
    {"job 1", "GetJob"},
    {"explain 1", "ExplainJob"},
    {"wait 1", "WaitJob"},
    {"cancel 1", "CancelJob"},
    {"hold --name '*'", "HoldJob"},
    {"release 1", "ReleaseJob"},
    {"requeue 1", "RequeueJob"},
    {"change 1 --priority 1", "ChangeJob"},
    {"submit -- true", "SubmitJob"},
    {"events", "ListEvents"},
    {"exec 1 -- true", "GetJob"},
    {"shell -n 1", "SubmitJob"},
    {"nodes", "ListNodes"},
    {"node n", "GetNode"},
    {"drain n", "DrainNode"},
    {"fleet apply " ORRERY_SOURCE_DIR "/examples/fleets/laptop.yaml", "ApplyFleet"},
    {"resume n", "ResumeNode"},
    {"node fence n", "FenceNode"},
    {"node burn-in n", "BurnInNode"},
    {"holds", "ListHolds"},
    {"power", "ListPowerDomains"},
    {"power cap n '5 kW'", "SetPowerCap"},
    {"tenants", "ListTenants"},
    {"usage", "ListTenants"},
    {"usage --jobs", "ListJobs"},
    {"user list", "ListUsers"},
    {"top", "GetCluster"},
    {"doctor --fleet", "GetCluster"},
};

class EscapesCli : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    controller_.start();
    (void)write("ca.pem", controller_.authority());
    (void)write("cluster.json",
                R"({"ca": "ca.pem", "address": ")" + controller_.address() + R"("})");
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--retry 0 --dir " + path("") + " " + arguments);
  }
  template <class Response>
  void answer(const char* method, const std::string& text) {
    Response response;
    fill(response, text);
    if constexpr (requires { response.clear_next_page_token(); }) response.clear_next_page_token();
    controller_.on(method,
                   [response](const FakeController::Heard&) { return answer_with(response); });
  }
  void answer_all(const std::string& text) {
    answer<v1::ListJobsResponse>("ListJobs", text);
    answer<v1::Job>("GetJob", text);
    answer<v1::Job>("WaitJob", text);
    answer<v1::Explanation>("ExplainJob", text);
    answer<v1::CancelJobResponse>("CancelJob", text);
    for (const char* method : {"HoldJob", "ReleaseJob", "RequeueJob", "ChangeJob"}) {
      answer<v1::Job>(method, text);
    }
    answer<v1::SubmitJobResponse>("SubmitJob", text);
    answer<v1::ListNodesResponse>("ListNodes", text);
    answer<v1::Node>("GetNode", text);
    for (const char* method : {"DrainNode", "ResumeNode", "FenceNode", "BurnInNode"}) {
      answer<v1::NodeResponse>(method, text);
    }
    answer<v1::FleetChange>("ApplyFleet", text);
    answer<v1::ListHoldsResponse>("ListHolds", text);
    answer<v1::ListPowerDomainsResponse>("ListPowerDomains", text);
    answer<v1::PowerDomain>("SetPowerCap", text);
    answer<v1::ListTenantsResponse>("ListTenants", text);
    answer<v1::ListUsersResponse>("ListUsers", text);
    answer<v1::Cluster>("GetCluster", text);
    v1::EventRow row;
    row.set_type(text);
    row.set_fields(nlohmann::json({{"why", text}, {"blame", {{"evidence", text}}}}).dump());
    v1::ListEventsResponse events;
    *events.add_events() = row;
    controller_.on("ListEvents",
                   [events](const FakeController::Heard&) { return answer_with(events); });
  }
  FakeController controller_;
};

TEST_F(EscapesCli, NoVerbSendsWhatUsersWroteToATerminalAsItIs) {
  for (const Hostile& hostile : corpus()) {
    answer_all(hostile.text);
    for (const Shown& shown : kShown) {
      const CliRun run = live(shown.arguments);
      EXPECT_EQ(obeyed(run.out), "") << shown.arguments << ", " << hostile.name;
      EXPECT_EQ(obeyed(run.err), "") << shown.arguments << ", " << hostile.name;
      EXPECT_NE(run.out + run.err, "") << shown.arguments;
    }
  }
}

TEST_F(EscapesCli, NoLineIsMadeByWhatUsersWrote) {
  for (const char* verb :
       {"jobs -a", "job 1", "nodes", "node n", "tenants", "usage", "usage --jobs", "user list",
        "holds", "power", "doctor --fleet",
        // Sentences.
        "wait 1", "cancel 1", "hold --name '*'", "submit -- true", "events", "drain n", "resume n",
        "fleet apply " ORRERY_SOURCE_DIR "/examples/fleets/laptop.yaml", "node fence --yes n",
        "node burn-in n", "power cap n '5 kW'"}) {
    const auto said = [&] {
      const CliRun run = live(verb);
      return run.out + run.err;
    };
    answer_all("plain");
    const std::string plain = said();
    answer_all("one\ntwo\n3  root  running");
    const std::string hostile = said();
    EXPECT_EQ(std::ranges::count(hostile, '\n'), std::ranges::count(plain, '\n')) << verb << ":\n"
                                                                                  << hostile;
  }
}

TEST_F(EscapesCli, JsonKeepsTheTruthAndIsSafeToShow) {
  for (const Hostile& hostile : corpus()) {
    answer_all(hostile.text);
    const CliRun run = live("-o json job 1");
    EXPECT_EQ(obeyed(run.out), "") << hostile.name;
    EXPECT_EQ(nlohmann::json::parse(run.out)["blame"], hostile.text) << hostile.name;
    EXPECT_EQ(obeyed(live("-o json events").out), "") << hostile.name;
  }
}

TEST_F(EscapesCli, AnErrorThatQuotesWhatUsersWroteIsEscapedToo) {
  for (const Hostile& hostile : corpus()) {
    for (const Shown& shown : kShown) {
      controller_.on(shown.method, [&](const FakeController::Heard&) {
        return refuse(grpc::StatusCode::INVALID_ARGUMENT, hostile.text);
      });
      const CliRun run = live(shown.arguments);
      EXPECT_EQ(obeyed(run.err), "") << shown.arguments << ", " << hostile.name;
    }
  }
  const CliRun file = orrery("submit $'no\\e[31msuch.yaml'");
  EXPECT_EQ(file.code, 2);
  EXPECT_EQ(obeyed(file.err), "");
}

TEST_F(EscapesCli, EveryVerbThatTalksToAControllerIsAmongThem) {
  // These verbs print facts of the catalog, files of the user, or their own results.
  const std::set<std::string> own{
      "attach",   "calibrate-node", "catalog",  "compare", "completion", "design", "down",
      "estimate", "fleet",          "logs",     "plan",    "predict",    "replay", "report",
      "schedule", "serve",          "simulate", "store",   "study",      "up",     "what-if"};
  std::set<std::string> shown;
  for (const Shown& each : kShown) {
    const std::string arguments = each.arguments;
    shown.insert(arguments.substr(0, arguments.find(' ')));
  }
  std::istringstream lines(orrery("__complete ''").out);
  for (std::string line; std::getline(lines, line);) {
    const std::string verb = line.substr(0, line.find('\t'));
    if (verb.empty() || verb.starts_with('-') || verb.starts_with(':')) continue;
    EXPECT_TRUE(own.contains(verb) || shown.contains(verb)) << verb;
  }
}

/// Markup that only a hostile text can have brought.
void expect_no_markup(const std::string& page, const std::string& where) {
  EXPECT_GT(page.size(), 1'000u) << where;
  for (const char* markup : {"<script>alert", "<img ", "href=\"javascript:"}) {
    EXPECT_EQ(page.find(markup), std::string::npos) << where << ": " << markup;
  }
  EXPECT_EQ(obeyed(page), "") << where;
}

TEST_F(EscapesCli, NoPageHasMarkupThatUsersWrote) {
  const std::string hostile = "\"><img src=x onerror=alert(1)><script>alert(1)<b>";
  std::filesystem::create_directories(path(hostile));
  const std::string out = "'" + path(hostile) + "/out'";
  const CliRun simulated = orrery(
      "simulate --accelerators h100:16 --generate philly --jobs 20 --policy fifo --out " + out);
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  expect_no_markup(slurp(path(hostile) + "/out/report.html"), "simulate");
  const CliRun planned = orrery("plan --model llama-3.1-8b --accelerators h100:8 --html '" +
                                path(hostile) + "/plan.html'");
  ASSERT_EQ(planned.code, 0) << planned.err;
  expect_no_markup(slurp(path(hostile) + "/plan.html"), "plan");
}

}  // namespace
}  // namespace orrery
