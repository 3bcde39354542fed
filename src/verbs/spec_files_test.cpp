// verbs/spec_files_test.cpp - the files that options name: beside the file that names them,
// or passed as text.
#include "verbs/spec_files.hpp"

#include <gtest/gtest.h>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

TEST(SpecFiles, AFileBesideTheOneThatNamesItComesFirst) {
  const ScratchFiles files;
  const std::string beside = files.write("study/runtime.yaml", "kind: Runtime\n");
  const SpecFiles found{.directory = files.path("study"), .texts = {}};
  EXPECT_EQ(found.path("runtime.yaml"), beside);
  EXPECT_EQ(found.path("other.yaml"), "other.yaml");
  EXPECT_EQ(found.path(""), "") << "no name is not the directory";
  EXPECT_EQ(found.path("."), ".") << "a directory is no file";
  EXPECT_EQ(SpecFiles{}.path("runtime.yaml"), "runtime.yaml");
}

TEST(SpecFiles, ATextTakesThePlaceOfAFile) {
  const SpecFiles files{.directory = "", .texts = {{"r.yaml", "kind: Runtime\nx: ["}}};
  const Result<Document> broken = files.document("r.yaml");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().where.file, "r.yaml");
  const Result<Document> none = files.document("none.yaml");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(), "none.yaml: No such file or directory");
}

TEST(SpecFiles, AKeptFileIsReadOnce) {
  const ScratchFiles scratch;
  const std::string path = scratch.write("r.yaml", "kind: Runtime\n");
  SpecFiles files;
  ASSERT_TRUE(files.keep(path));
  scratch.write("r.yaml", "kind: [");
  const Result<Document> again = files.keep(path);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(files.texts.at(path), "kind: Runtime\n");
  EXPECT_TRUE(files.document(path));
}

TEST(SpecFiles, AKeptFileThatIsWrongIsToldWithItsPath) {
  const ScratchFiles scratch;
  SpecFiles files{.directory = scratch.path("."), .texts = {}};
  const std::string path = scratch.write("fleet.yaml", "apiVersion: orrery/v1\nkind: Job\n");
  const Result<FleetFile> fleet = files.keep_fleet("fleet.yaml");
  ASSERT_FALSE(fleet);
  EXPECT_EQ(fleet.error().where.file, files.path("fleet.yaml"));
  EXPECT_TRUE(std::filesystem::equivalent(fleet.error().where.file, path));
  EXPECT_FALSE(files.keep_fleet("none.yaml"));
}

TEST(SpecFiles, ANameOfAFileHasASlashOrASuffix) {
  for (const char* file : {"a.yaml", "a.yml", "a.json", "./policy", "/etc/x", "dir/a:b"}) {
    EXPECT_TRUE(is_file_name(file)) << file;
  }
  for (const char* name : {"fair-share", "", "backfill:depth=3", "name:path=a/b", "yaml"}) {
    EXPECT_FALSE(is_file_name(name)) << name;
  }
}

}  // namespace
}  // namespace orrery
