#include "verbs/local/local_record.hpp"

#include <array>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {

constexpr auto enum_words(LocalRole) {
  return std::to_array<EnumWord<LocalRole>>({{"agent", LocalRole::kAgent},
                                             {"controller", LocalRole::kController},
                                             {"store", LocalRole::kStore},
                                             {"gateway", LocalRole::kGateway}});
}

template <class Visitor, SameStruct<ProcessIdentity> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("pid", p.pid);
  visitor.required("started", p.started);
}

template <class Visitor, SameStruct<LocalProcess> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("name", p.name);
  visitor.optional("role", p.role);
  visitor.required("process", p.process);
  visitor.optional("controller", p.controller);
}

template <class Visitor, SameStruct<LocalServers> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("store", s.store);
  visitor.optional("listen", s.listen);
  visitor.optional("http", s.http);
  visitor.optional("etcd", s.etcd);
  visitor.optional("etcd_peers", s.etcd_peers);
}

template <class Visitor, SameStruct<LocalRecord> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("boot", r.boot);
  visitor.required("machine_boot", r.machine_boot);
  visitor.optional("servers", r.servers);
  visitor.optional("gateway", r.gateway);
  visitor.optional("processes", r.processes);
}

LocalProcess& LocalRecord::process(LocalRole role, const std::string& name) {
  for (LocalProcess& each : processes) {
    if (each.role == role && each.name == name) return each;
  }
  return processes.emplace_back(LocalProcess{name, role, {}, ""});
}

Result<LocalRecord> read_local_record(Storage& storage, const std::string& directory) {
  constexpr std::size_t kFileMax = 4 << 20;
  const std::string path = directory + "/local.json";
  LocalRecord record;
  StorageResult<std::string> text = storage.read_file(path, kFileMax);
  if (!text && text.error().failure != StorageFailure::kNotFound) return forward_error(text);
  if (text) {
    const Result<Document> document = Document::parse(*text, path);
    if (!document) return tl::unexpected(document.error());
    if (Status read = read_struct(document->root(), record, {}); !read) return forward_error(read);
  }
  for (LocalProcess& each : record.processes) {  // of a release without roles
    if (each.name == "orreryd") each.role = LocalRole::kController;
  }
  if (record.machine_boot == machine_boot()) return record;
  if (!record.machine_boot.empty()) ++record.boot;
  record.machine_boot = machine_boot();
  record.processes.clear();
  return record;
}

Status write_local_record(Storage& storage, const std::string& directory,
                          const LocalRecord& record) {
  StorageStatus put = storage.write_file(directory + "/local.json", to_json(record).dump(1) + "\n");
  if (!put) return forward_error(put);
  return {};
}

}  // namespace orrery
