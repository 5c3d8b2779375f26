// A folder below one where others may write, who put something else in its place.
#include "agent/measuring/own_folder.h"

#include <unistd.h>

#include <filesystem>

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
namespace fs = std::filesystem;

TEST_CASE("own folder: under a name that no one knew, and gone with what is in it", "[hosts]") {
  const TempDir dir;
  const Files files;
  const OwnFolder folder(dir.path("shared/known")), other(dir.path("shared/known"));
  CHECK_FALSE(folder.make().ok());  // what it lies in was not there
  fs::create_directories(dir.path("shared/known"));
  const OwnFolder made(dir.path("shared/known"));
  CHECK(made.path().starts_with(dir.path("shared/")));
  CHECK(made.path() != dir.path("shared/known"));
  CHECK(made.path() != folder.path());
  CHECK(folder.path() != other.path());
  made.remove();  // never made
  REQUIRE(made.make().ok());
  CHECK_FALSE(made.make().ok());
  CHECK((fs::status(made.path()).permissions() & fs::perms::others_all) == fs::perms::none);
  REQUIRE(files.write(made.path() + "/left", "x").ok());
  fs::create_directories(made.path() + "/empty");
  made.remove();
  CHECK(files.list(dir.path("shared")) == std::vector<std::string>{"known"});
  CHECK_FALSE(OwnFolder("").make().ok());
  CHECK(OwnFolder("").path().empty());
}

TEST_CASE("own folder: a link in its place, in the way to it or in it removes nothing of others", "[hosts]") {
  const TempDir dir;
  const Files files;
  REQUIRE(files.write(dir.path("etc/passwd"), "root").ok());
  fs::create_directories(dir.path("shared"));
  const OwnFolder folder(dir.path("shared/known"));
  REQUIRE(folder.make().ok());
  const std::string name = folder.path().substr(folder.path().rfind('/') + 1);
  SECTION("in its place") {
    fs::remove(folder.path());
    fs::create_directory_symlink(dir.path("etc"), folder.path());
    folder.remove();
    CHECK_FALSE(folder.make().ok());
  }
  SECTION("in the way to it") {
    fs::rename(dir.path("etc"), dir.path(name));
    fs::create_directory_symlink(dir.path(name), dir.path("etc"));
    fs::rename(dir.path("shared"), dir.path("moved"));
    fs::create_directory_symlink(dir.path("."), dir.path("shared"));  // shared/NAME is the other folder now
    folder.remove();
    CHECK_FALSE(files.exists(dir.path("moved/" + name)));
  }
  SECTION("in it, and a file that has another name elsewhere") {
    fs::create_directory_symlink(dir.path("etc"), folder.path() + "/etc");
    fs::create_symlink(dir.path("etc/passwd"), folder.path() + "/passwd");
    fs::create_hard_link(dir.path("etc/passwd"), folder.path() + "/same");
    folder.remove();
    CHECK_FALSE(files.exists(folder.path()));
  }
  CHECK(files.read(dir.path("etc/passwd")).value_or("") == "root");
}

TEST_CASE("own folder: another user's directory of that name is left alone", "[hosts]") {
  if (::geteuid() != 0) return;  // only root can give a folder away
  const TempDir dir;
  const OwnFolder folder(dir.path("known"));
  REQUIRE(folder.make().ok());
  REQUIRE(Files().write(folder.path() + "/theirs", "x").ok());
  REQUIRE(::chown(folder.path().c_str(), 65534, 65534) == 0);
  folder.remove();
  CHECK(Files().exists(folder.path() + "/theirs"));
}
