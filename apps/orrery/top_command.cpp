// orrery top
#include <unistd.h>

#include <memory>

#include "api/cluster_directory.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/terminal_screen.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/cluster/live_text.hpp"
#include "verbs/watch/cluster_view.hpp"

namespace orrery {
namespace {

constexpr Duration kRefresh = Duration::seconds(1);
Status show_once(const CommandOptions& options) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<ClusterView> view = look_at_cluster(**session);
  if (!view) return tl::unexpected(view.error());
  if (options.output == OutputFormat::kJson) {
    print_json(cluster_view_json(*view));
  } else {
    print_shown(cluster_view_text(LiveText::of(options), *view));
  }
  return {};
}

Status show(const CommandOptions& options) {
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (!terminal || options.output == OutputFormat::kJson) return show_once(options);
  CommandOptions impatient = options;
  impatient.retry_s = 0;  // the next frame tries again
  // Without a cluster there is nothing to fill the screen with. No session yet: its threads would
  // be older than the screen.
  RealStorage storage;
  const auto found = read_cluster_address(storage, cluster_directory(options));
  if (!found) return tl::unexpected(found.error());
  Result<TerminalScreen> screen = TerminalScreen::open();
  if (!screen) return forward_error(screen);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(impatient);
  if (!session) return forward_error(session);
  std::string last;
  do {
    const Result<ClusterView> view = look_at_cluster(**session);
    std::string trouble;
    if (view) {
      last = cluster_view_text(LiveText::of(options), *view);
    } else {
      trouble = terminal_text(view.error().text(), Newlines::kKept) + "\n\n";
    }
    screen->draw(trouble + last);
  } while (screen->wait(kRefresh));
  return {};
}

}  // namespace

void add_top_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  CLI::App& top = *app.add_subcommand(
      "top", "show a running cluster full-screen, refreshed every second; q quits");
  top.footer("If standard output is not a terminal, the state is printed once.");
  top.callback([&options, &chosen] { chosen = [&options] { return show(options); }; });
}

}  // namespace orrery
