// Program binaries: saved, loaded, refused, and different ones for several devices.
#include "support/programs.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

namespace polder::test {
namespace {

TEST_F(Programs, BinariesAreSavedAndLoaded) {
    OwnedProgram program = build(good_source, "-DY");
    const std::vector<std::vector<unsigned char>> saved = binaries(program);
    ASSERT_FALSE(saved[0].empty());
    cl_int status = CL_INVALID_VALUE, error = CL_INVALID_VALUE;
    OwnedProgram loaded = from_binary(saved[0], &status, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(status, CL_SUCCESS);
    EXPECT_EQ(program_text(loaded, CL_PROGRAM_SOURCE), "");
    EXPECT_EQ(clCompileProgram(loaded, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_INVALID_OPERATION);
    ASSERT_EQ(clBuildProgram(loaded, 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    char options[16] = {};
    EXPECT_EQ(clGetProgramBuildInfo(loaded, devices[0], CL_PROGRAM_BUILD_OPTIONS, sizeof options, options, nullptr),
              CL_SUCCESS);
    EXPECT_STREQ(options, "-DY");
    expect_runs(loaded, "second", 2);
}

// The half of the next test that runs in the other process.
TEST_F(Programs, RunsTheBinaryThatAnotherProcessSaved) {
    const char* const path = std::getenv("POLDER_TEST_BINARY");
    if (!path)
        GTEST_SKIP() << "run by BinariesAreReloadedInAnotherProcess";
    std::ifstream file(path, std::ios::binary);
    const std::vector<unsigned char> bytes{std::istreambuf_iterator<char>(file), {}};
    cl_int status = CL_INVALID_VALUE, error = CL_INVALID_VALUE;
    OwnedProgram loaded = from_binary(bytes, &status, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(loaded, 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    expect_runs(loaded, "second", 2);
}

TEST_F(Programs, BinariesAreReloadedInAnotherProcess) {
    OwnedProgram program = build(good_source);
    const std::string path = testing::TempDir() + "polder_program_" + std::to_string(getpid());
    {
        const std::vector<unsigned char> bytes = binaries(program)[0];
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    const pid_t child = fork();
    if (child == 0) {
        setenv("POLDER_TEST_BINARY", path.c_str(), 1);
        execl("/proc/self/exe", "api_program_binary", "--gtest_filter=Programs.RunsTheBinaryThatAnotherProcessSaved",
              nullptr);
        _exit(127);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    std::remove(path.c_str());
}

TEST_F(Programs, DamagedBinariesAreRefused) {
    OwnedProgram program = build(good_source);
    const std::vector<unsigned char> good = binaries(program)[0];
    cl_int status = CL_SUCCESS, error = CL_SUCCESS;
    for (const size_t at : {size_t{0}, size_t{9}, size_t{20}, good.size() / 2, good.size() - 1}) {
        std::vector<unsigned char> bad = good;
        bad[at] ^= 0x40;
        EXPECT_EQ(from_binary(bad, &status, &error), nullptr) << at;
        EXPECT_EQ(error, CL_INVALID_BINARY) << at;
        EXPECT_EQ(status, CL_INVALID_BINARY) << at;
    }
    for (const size_t size : {size_t{1}, size_t{31}, size_t{40}, good.size() - 1}) {
        EXPECT_EQ(from_binary({good.begin(), good.begin() + static_cast<ptrdiff_t>(size)}, &status, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_BINARY) << size;
    }
    EXPECT_EQ(from_binary(std::vector<unsigned char>(4096, 0x7f), &status, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_BINARY);
}

// An intact binary of another build: programs may keep binaries over an update of Polder.
TEST_F(Programs, BinariesOfAnotherBuildAreRefused) {
    OwnedProgram program = build(good_source);
    std::vector<unsigned char> bytes = binaries(program)[0];
    const auto seal = [&] {  // the checksum at the end, FNV-1a
        uint64_t hash = 0xcbf29ce484222325;
        for (size_t i = 0; i + sizeof hash < bytes.size(); ++i)
            hash = (hash ^ bytes[i]) * 0x100000001b3;
        std::memcpy(bytes.data() + bytes.size() - sizeof hash, &hash, sizeof hash);
    };
    cl_int status = CL_INVALID_VALUE, error = CL_INVALID_VALUE;
    seal();
    EXPECT_NE(OwnedProgram(from_binary(bytes, &status, &error)), nullptr);
    EXPECT_EQ(error, CL_SUCCESS);
    // CL_DRIVER_VERSION names the build, and so does the binary.
    std::string version(256, '\0');
    size_t size = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DRIVER_VERSION, version.size(), version.data(), &size), CL_SUCCESS);
    version.resize(size - 1);
    const std::string id = version.substr(version.rfind(' ') + 1);
    ASSERT_EQ(id.size(), 16u) << version;
    EXPECT_EQ(std::string(bytes.begin() + 16, bytes.begin() + 32), id);
    bytes[16] ^= 1;
    seal();
    EXPECT_EQ(from_binary(bytes, &status, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_BINARY);
    EXPECT_EQ(status, CL_INVALID_BINARY);
}

TEST_F(Programs, LoadingBinariesReportsEveryBadArgument) {
    OwnedProgram program = build(good_source);
    const std::vector<unsigned char> good = binaries(program)[0];
    size_t size = good.size(), zero = 0;
    const unsigned char* data = good.data();
    const unsigned char* none = nullptr;
    cl_int status = CL_SUCCESS, error = CL_SUCCESS;
    const cl_device_id foreign = foreign_handle<cl_device_id>(context);
    const auto load = [&](cl_context in, cl_uint count, const cl_device_id* list, const size_t* sizes,
                          const unsigned char** bytes) {
        EXPECT_EQ(clCreateProgramWithBinary(in, count, list, sizes, bytes, &status, &error), nullptr);
        return error;
    };
    EXPECT_EQ(load(foreign_handle<cl_context>(context), 1, devices.data(), &size, &data), CL_INVALID_CONTEXT);
    EXPECT_EQ(load(context, 0, devices.data(), &size, &data), CL_INVALID_VALUE);
    EXPECT_EQ(load(context, 1, nullptr, &size, &data), CL_INVALID_VALUE);
    EXPECT_EQ(load(context, 1, &foreign, &size, &data), CL_INVALID_DEVICE);
    EXPECT_EQ(load(context, 1, devices.data(), nullptr, &data), CL_INVALID_VALUE);
    EXPECT_EQ(load(context, 1, devices.data(), &size, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(load(context, 1, devices.data(), &zero, &data), CL_INVALID_VALUE);
    EXPECT_EQ(status, CL_INVALID_VALUE);
    EXPECT_EQ(load(context, 1, devices.data(), &size, &none), CL_INVALID_VALUE);
}

TEST_F(Programs, BinaryOfAnObjectCannotBeBuiltButLinked) {
    OwnedProgram program = from_source(good_source);
    ASSERT_EQ(clCompileProgram(program, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    cl_int status = CL_INVALID_VALUE, error = CL_INVALID_VALUE;
    OwnedProgram loaded = from_binary(binaries(program)[0], &status, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(build_value<cl_program_binary_type>(loaded, CL_PROGRAM_BINARY_TYPE),
              cl_program_binary_type{CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT});
    EXPECT_EQ(clBuildProgram(loaded, 0, nullptr, nullptr, nullptr, nullptr), CL_INVALID_BINARY);
    cl_program inputs[] = {loaded};
    OwnedProgram linked = clLinkProgram(context, 1, devices.data(), "", 1, inputs, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    expect_runs(linked, "first", 1);
}

constexpr const char* number_source = "kernel void number(global int* a) { a[0] = NUMBER; }";

TEST_F(Programs, EachDeviceRunsTheBinaryThatItWasGiven) {
    const std::vector<std::vector<unsigned char>> ones = binaries(build(number_source, "-DNUMBER=1"));
    const std::vector<std::vector<unsigned char>> twos = binaries(build(number_source, "-DNUMBER=2"));
    std::vector<const unsigned char*> bytes;
    std::vector<size_t> sizes;
    for (size_t i = 0; i < devices.size(); ++i) {
        const std::vector<unsigned char>& binary = (i % 2 == 0 ? ones : twos)[i];
        bytes.push_back(binary.data());
        sizes.push_back(binary.size());
    }
    cl_int error = CL_INVALID_VALUE;
    const OwnedProgram mixed = clCreateProgramWithBinary(context, static_cast<cl_uint>(devices.size()), devices.data(),
                                                         sizes.data(), bytes.data(), nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(mixed, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    for (size_t i = 0; i < devices.size(); ++i) {
        queue = make_queue(devices[i]);
        expect_runs(mixed, "number", i % 2 == 0 ? 1 : 2);
    }
}

TEST_F(Programs, EachDeviceLinksWhatWasCompiledForIt) {
    const OwnedProgram object = from_source(number_source);
    for (size_t i = 0; i < devices.size(); ++i) {
        const std::string options = "-DNUMBER=" + std::to_string(i);
        ASSERT_EQ(clCompileProgram(object, 1, &devices[i], options.c_str(), 0, nullptr, nullptr, nullptr, nullptr),
                  CL_SUCCESS);
    }
    cl_int error = CL_INVALID_VALUE;
    const cl_program input = object;
    const OwnedProgram linked = clLinkProgram(context, 0, nullptr, "", 1, &input, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    for (size_t i = 0; i < devices.size(); ++i) {
        queue = make_queue(devices[i]);
        expect_runs(linked, "number", static_cast<cl_int>(i));
    }
}

} // namespace
} // namespace polder::test
