// The cache on disk returns what was stored under a key, or nothing, whatever its directory contains.
#include "files/cache.h"

#include <base/options.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace polder::compiler {
namespace {

namespace fs = std::filesystem;

class CompilerCache : public testing::Test {
protected:
    void SetUp() override {
        fs::remove_all(directory());
        store_cached(key, "some bytes");
        ASSERT_EQ(load_cached(key), "some bytes");
        alarm(60);  // a test that waits for a file fails
    }
    void TearDown() override { alarm(0); }

    static fs::path directory() { return options::cache_directory(); }
    static fs::path path_of(const std::string& of) { return directory() / of.substr(0, 2) / of.substr(2); }
    void expect_absent(const std::string& of) { EXPECT_EQ(load_cached(of), std::nullopt); }

    const std::string key = cache_key({"one"});
    const std::string other = cache_key({"other"});
};

TEST_F(CompilerCache, AnEmptyEntry_IsAnEntry) {
    store_cached(other, "");
    EXPECT_EQ(load_cached(other), "");
}

TEST_F(CompilerCache, AnEntryUnderAnotherKey_IsAbsentAndRemoved) {
    fs::create_directories(path_of(other).parent_path());
    fs::permissions(path_of(other).parent_path(), fs::perms::owner_all);
    fs::copy_file(path_of(key), path_of(other));
    expect_absent(other);
    EXPECT_FALSE(fs::exists(path_of(other)));
    EXPECT_EQ(load_cached(key), "some bytes");
}

TEST_F(CompilerCache, ADamagedEntry_IsAbsent) {
    const auto size = static_cast<off_t>(fs::file_size(path_of(key)));
    for (const off_t kept : {off_t{0}, off_t{5}, size - 1}) {
        store_cached(key, "some bytes");
        ASSERT_EQ(truncate(path_of(key).c_str(), kept), 0);
        expect_absent(key);
    }
    store_cached(key, "some bytes");
    std::fstream(path_of(key)).put('S');
    expect_absent(key);
}

TEST_F(CompilerCache, AFifo_IsAbsentAtOnce) {
    fs::remove(path_of(key));
    ASSERT_EQ(mkfifo(path_of(key).c_str(), 0600), 0);
    expect_absent(key);
}

TEST_F(CompilerCache, ALinkToAFileWithoutEnd_IsAbsent) {
    fs::remove(path_of(key));
    fs::create_symlink("/dev/zero", path_of(key));
    expect_absent(key);
}

TEST_F(CompilerCache, ALinkToAnEntry_IsAbsent) {
    fs::rename(path_of(key), directory() / "elsewhere");
    fs::create_symlink(directory() / "elsewhere", path_of(key));
    expect_absent(key);
}

TEST_F(CompilerCache, AnEnormousFile_IsAbsent) {
    ASSERT_EQ(truncate(path_of(key).c_str(), off_t{1} << 40), 0);
    expect_absent(key);
}

TEST_F(CompilerCache, WhatOthersMayWriteTo_IsNotUsed) {
    for (const fs::path& place : {directory(), path_of(key).parent_path(), path_of(key)})
        for (const fs::perms perms : {fs::perms::group_write, fs::perms::others_write}) {
            fs::permissions(place, perms, fs::perm_options::add);
            expect_absent(key);
            fs::permissions(place, perms, fs::perm_options::remove);
            EXPECT_EQ(load_cached(key), "some bytes");
        }
    fs::permissions(directory(), fs::perms::others_write, fs::perm_options::add);
    store_cached(other, "more");
    EXPECT_FALSE(fs::exists(path_of(other)));
}

TEST_F(CompilerCache, WhatBelongsToAnotherUser_IsNotUsed) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can give a directory away";
    for (const fs::path& place : {directory(), path_of(key).parent_path(), path_of(key)}) {
        ASSERT_EQ(chown(place.c_str(), 12345, static_cast<gid_t>(-1)), 0);
        expect_absent(key);
        ASSERT_EQ(chown(place.c_str(), 0, static_cast<gid_t>(-1)), 0);
        EXPECT_EQ(load_cached(key), "some bytes");
    }
}

} // namespace
} // namespace polder::compiler
