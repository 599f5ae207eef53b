// Files that the compiler needs are missing or damaged, or the disk is full: the build reports it, or works without them.
//
// The compiler reads the environment at its first use, so each case runs in a child process of its own.
#include "compiler_support.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace polder::compiler::test {
namespace {

namespace fs = std::filesystem;

using Environment = std::vector<std::pair<const char*, std::string>>;

// What `work` returns in a child process with `environment`; "died" if it ends in any other way.
std::string in_child(const Environment& environment, const std::function<std::string()>& work) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        for (const auto& [name, value] : environment)
            setenv(name, value.c_str(), 1);
        const std::string answer = work();
        const bool is_told = write(ends[1], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size());
        _exit(is_told ? 0 : 1);
    }
    close(ends[1]);
    std::string answer;
    char part[512];
    for (ssize_t size = 0; (size = read(ends[0], part, sizeof part)) > 0;)
        answer.append(part, static_cast<size_t>(size));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? answer : "died";
}

constexpr const char* source = "kernel void k(global float* a) { a[get_global_id(0)] = sin(0.0f) + 5; }";

// "5" when a program builds and runs.
std::string build_and_run() {
    const Outcome built = build(source);
    if (built.status == Status::build_program_failure)
        return "build failure\n" + built.log;
    if (built.status != Status::success)
        return "another error\n" + built.log;
    float a[4] = {};
    Launch{built, "k"}.set(0, &a[0]).run(4, 4);
    return std::to_string(static_cast<int>(a[3]));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Which code the processor gets for a kernel whose work-items could be lanes, and what it computes: "lanes 5".
std::string kind_of_code() {
    const std::string result = build_and_run();
    const Outcome built = build(source);
    const auto executable = Executable::open(built.module, target());
    const auto code = (*executable)->code("k", std::nullopt);
    return (std::get<driver::HostCode>(**code).preferred_multiple > 1 ? "lanes " : "loops ") + result;
}

class CompilerEnvironment : public ::testing::Test {
protected:
    void SetUp() override { fs::create_directories(folder()); }
    void TearDown() override { fs::remove_all(folder()); }
    static fs::path folder() { return fs::temp_directory_path() / ("polder-environment-" + std::to_string(getpid())); }
    static size_t files_in(const fs::path& directory) {
        size_t count = 0;
        std::error_code error;
        for (const auto& entry : fs::recursive_directory_iterator(directory, error))
            count += entry.is_regular_file() ? 1 : 0;
        return count;
    }
};

TEST_F(CompilerEnvironment, DebuggingTimes_PrintsWhereTheTimeForAKernelGoes) {
    const auto printed = [](const char* categories) {
        return in_child({{"POCL_DEBUG", categories}, {"POCL_KERNEL_CACHE", "0"}}, [] {
            ::testing::internal::CaptureStderr();
            const std::string result = build_and_run();
            return result + "\n" + ::testing::internal::GetCapturedStderr();
        });
    };
    const std::string times = printed("timing");
    EXPECT_TRUE(std::regex_search(times, std::regex("^5\npolder: timing: kernel k: [0-9.]+ ms: ")) &&
                std::regex_search(times, std::regex("machine code [0-9.]+")))
        << times;
    EXPECT_NE(times.find("work-group function"), std::string::npos) << times;
    EXPECT_EQ(printed("driver").find("machine code"), std::string::npos);
}

TEST_F(CompilerEnvironment, MissingBuiltIns_AreNamedWithTheirPackage) {
    const std::string answer =
        in_child({{"POLDER_BUILTINS_DIR", "/nonexistent/place"}, {"POCL_KERNEL_CACHE", "0"}}, build_and_run);
    EXPECT_TRUE(contains(answer, "build failure")) << answer;
    EXPECT_TRUE(contains(answer, "polder-builtins.bca")) << answer;
    EXPECT_TRUE(contains(answer, "libclc-")) << answer;
    EXPECT_TRUE(contains(answer, "/nonexistent/place")) << answer;
}

// One cache for all: code of one kind is never taken for the other.
TEST_F(CompilerEnvironment, TheWorkGroupMethodDecidesWhetherWorkItemsAreLanes) {
    const auto with = [](const char* method) {
        return in_child({{"POCL_WORK_GROUP_METHOD", method}, {"POCL_CACHE_DIR", folder().string()}}, kind_of_code);
    };
    EXPECT_EQ(with("loops"), "loops 5");
    EXPECT_EQ(with("auto"), "lanes 5");
    EXPECT_EQ(with("loops"), "loops 5");
    EXPECT_EQ(with("lanes"), "lanes 5");
    EXPECT_EQ(with("loopvec"), "lanes 5");
    EXPECT_EQ(with("nonsense"), "lanes 5");
}

// What the compiler says about a kernel whose lanes would be slower.
std::string report_of_slow_lanes() {
    ::testing::internal::CaptureStderr();
    const Outcome built =
        build("kernel void k(global int* a) { size_t i = get_global_id(0); i *= i; a[i] = a[i + 1]; }");
    const auto executable = Executable::open(built.module, target());
    const bool is_made = (*executable)->code("k", std::nullopt).has_value();
    return ::testing::internal::GetCapturedStderr() + (is_made ? "" : "no code");
}

TEST_F(CompilerEnvironment, LanesThatWouldBeSlower_AreMadeOnlyForMeasurements) {
    const auto with = [](const char* method) {
        return in_child({{"POCL_WORK_GROUP_METHOD", method}, {"POCL_KERNEL_CACHE", "0"}, {"POCL_DEBUG", "compiler"}},
                        report_of_slow_lanes);
    };
    const std::string estimate = "; estimated time with lanes by that without ";
    EXPECT_TRUE(contains(with("auto"), "no lanes: lanes would be slower" + estimate)) << with("auto");
    EXPECT_TRUE(contains(with("lanes"), " lanes of dimension 0" + estimate)) << with("lanes");
}

#if defined(__x86_64__)

// How many work-items are lanes of one vector, and what the kernel computes: "8 5".
std::string lanes_of_code() {
    const std::string result = build_and_run();
    const auto executable = Executable::open(build(source).module, target());
    const auto code = (*executable)->code("k", std::nullopt);
    return std::to_string(std::get<driver::HostCode>(**code).preferred_multiple) + " " + result;
}

// One cache for all: code for one processor is never taken for another.
TEST_F(CompilerEnvironment, TheChosenProcessorDecidesHowWideVectorsAre) {
    const auto with = [](const char* processor) {
        return in_child({{"POLDER_CPU_TARGET", processor}, {"POCL_CACHE_DIR", folder().string()}}, lanes_of_code);
    };
    const std::string own = with("");
    EXPECT_EQ(with("x86-64-v2"), "4 5");
    EXPECT_EQ(with(""), own);
    if (__builtin_cpu_supports("avx2")) {
        EXPECT_EQ(with("haswell"), "8 5");
    }
    // Nothing that this machine lacks is used.
    EXPECT_EQ(with("diamondrapids").substr(0, own.size()), own);
}

TEST_F(CompilerEnvironment, AnUnknownProcessorIsReportedAndIgnored) {
    const std::string own = in_child({{"POCL_KERNEL_CACHE", "0"}}, lanes_of_code);
    const std::string answer = in_child({{"POLDER_CPU_TARGET", "abacus"}, {"POCL_KERNEL_CACHE", "0"}}, [] {
        ::testing::internal::CaptureStderr();
        const std::string lanes = lanes_of_code();
        return lanes + "\n" + ::testing::internal::GetCapturedStderr();
    });
    EXPECT_EQ(answer, own + "\npolder: warning: POLDER_CPU_TARGET=\"abacus\" is not a processor that LLVM knows; it is "
                            "ignored\n");
}

#endif

TEST_F(CompilerEnvironment, DamagedBuiltIns_AreNamed) {
    const fs::path archive = folder() / "polder-builtins.bca";
    const auto answer = [&] {
        return in_child({{"POLDER_BUILTINS_DIR", folder().string()}, {"POCL_KERNEL_CACHE", "0"}}, build_and_run);
    };
    std::ofstream(archive) << "this is no archive of built-ins, but it is long enough for a header, one would think.";
    EXPECT_TRUE(contains(answer(), "build failure")) << answer();
    EXPECT_TRUE(contains(answer(), archive.string())) << answer();
    // A header and an index that name more bytes than the file has.
    fs::copy_file(POLDER_TEST_BUILTINS, archive, fs::copy_options::overwrite_existing);
    fs::resize_file(archive, fs::file_size(archive) / 2);
    EXPECT_TRUE(contains(answer(), "build failure")) << answer();
    fs::copy_file(POLDER_TEST_BUILTINS, archive, fs::copy_options::overwrite_existing);
    EXPECT_EQ(answer(), "5");
}

TEST_F(CompilerEnvironment, MissingHeadersOfClang_AreNamedWithTheirPackage) {
    const std::string answer =
        in_child({{"POLDER_CLANG_RESOURCE_DIR", folder().string()}, {"POCL_KERNEL_CACHE", "0"}}, build_and_run);
    EXPECT_TRUE(contains(answer, "build failure")) << answer;
    EXPECT_TRUE(contains(answer, "opencl-c-base.h")) << answer;
    EXPECT_TRUE(contains(answer, "libclang-common-")) << answer;
}

TEST_F(CompilerEnvironment, ACacheDirectoryThatCannotBeWritten_IsDoneWithout) {
    for (const std::string place : {"/proc/polder/cache", "/dev/null/cache", "/dev/full"})
        EXPECT_EQ(in_child({{"POCL_CACHE_DIR", place}}, build_and_run), "5") << place;
}

// The system refuses the write as on a full disk, with another error number, and sends a signal that by default ends
// the process.
TEST_F(CompilerEnvironment, AFileThatCannotGrow_IsNotKept_AndItsSignalReachesNoHandler) {
    static volatile std::sig_atomic_t signals = 0;
    const auto with_limit = [](void (*disposition)(int)) {
        return [disposition] {
            std::signal(SIGXFSZ, disposition);
            const rlimit limit{200, 200};
            setrlimit(RLIMIT_FSIZE, &limit);
            const std::string answer = build_and_run();
            sigset_t mask;
            pthread_sigmask(SIG_SETMASK, nullptr, &mask);
            return answer + (sigismember(&mask, SIGXFSZ) == 1 ? " blocked" : "") + (signals != 0 ? " handled" : "");
        };
    };
    const Environment environment{{"POCL_CACHE_DIR", folder().string()}};
    for (void (*const disposition)(int) : {SIG_DFL, SIG_IGN, +[](int) { signals = signals + 1; }})
        EXPECT_EQ(in_child(environment, with_limit(disposition)), "5");
    EXPECT_EQ(files_in(folder()), 0u);
    EXPECT_EQ(in_child(environment, build_and_run), "5");
    EXPECT_GE(files_in(folder()), 2u);  // the program, the kernel, and a cold function that it may call
}

TEST_F(CompilerEnvironment, AFullDisk_IsDoneWithout) {
    const auto on_full_disk = [] {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 && unshare(CLONE_NEWNS) != 0)
            return std::string{"no namespace"};
        if (mount("tmpfs", folder().c_str(), "tmpfs", 0, "size=16k") != 0)
            return std::string{"no mount"};
        std::ofstream(folder() / "filler") << std::string(1 << 20, 'x');
        const std::string answer = build_and_run();
        return answer + " " + std::to_string(files_in(folder()));
    };
    const std::string answer = in_child({{"POCL_CACHE_DIR", folder().string()}}, on_full_disk);
    if (contains(answer, "no "))
        GTEST_SKIP() << "this process may not mount a small disk: " << answer;
    EXPECT_EQ(answer, "5 1");
}

TEST_F(CompilerEnvironment, TheUsersFinalizer_SeesTheBitcode_AndItsFailureIsAnError) {
    const std::string copy = (folder() / "copy.bc").string();
    EXPECT_EQ(in_child({{"POCL_KERNEL_CACHE", "0"}, {"POCL_BITCODE_FINALIZER", "cp %(bc) " + copy}}, build_and_run),
              "5");
    EXPECT_TRUE(fs::exists(copy) && fs::file_size(copy) > 0);
    const auto refused = [] {
        const Outcome built = build(source);
        auto executable = Executable::open(built.module, target());
        const auto function = (*executable)->code("k", std::nullopt);
        return function ? std::string{"made"} : std::string{function.error().detail()};
    };
    EXPECT_TRUE(contains(in_child({{"POCL_KERNEL_CACHE", "0"}, {"POCL_BITCODE_FINALIZER", "false"}}, refused),
                         "POCL_BITCODE_FINALIZER"));
}

TEST_F(CompilerEnvironment, TemporaryFiles_AreLeftIfAskedFor_AndHaveDebugInformationWithDashG) {
    const auto object = [](const char* options) {
        fs::remove_all(folder());
        const std::string answer = in_child({{"POCL_CACHE_DIR", folder().string()},
                                             {"POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES", "1"},
                                             {"POCL_EXTRA_BUILD_FLAGS", options}},
                                            build_and_run);
        EXPECT_EQ(answer, "5");
        EXPECT_TRUE(fs::exists(folder() / "k.ll"));
        std::ifstream file(folder() / "k.o", std::ios::binary);
        return std::string{std::istreambuf_iterator<char>(file), {}};
    };
    EXPECT_FALSE(contains(object(""), ".debug_line"));
    EXPECT_FALSE(fs::exists(folder() / "sources"));
    EXPECT_TRUE(contains(object("-g"), ".debug_line"));
    EXPECT_EQ(fs::status(folder()).permissions() & fs::perms::all, fs::perms::owner_all);
    // The source lies where the debug information says.
    std::string found;
    for (const auto& entry : fs::recursive_directory_iterator(folder() / "sources"))
        if (entry.path().filename() == "program.cl") {
            std::ifstream file(entry.path());
            found.assign(std::istreambuf_iterator<char>(file), {});
            EXPECT_TRUE(contains(object("-g"), entry.path().parent_path().string()));
            break;
        }
    EXPECT_EQ(found, source);
}

// What debug information says of the variables of a kernel, as LLVM writes it: the values by name.
std::map<std::string, std::vector<std::string>> described_variables(const std::string& ir) {
    std::map<std::string, std::string> names;
    std::smatch match;
    const std::regex variable{R"re((!\d+) = !DILocalVariable\(name: "(\w+)")re"};
    for (auto at = ir.begin(); std::regex_search(at, ir.end(), match, variable); at = match.suffix().first)
        names[match[1]] = match[2];
    std::map<std::string, std::vector<std::string>> values;
    const std::regex record{R"re(#dbg_\w+\((\w+ [%\w.-]+), (!\d+),)re"};
    for (auto at = ir.begin(); std::regex_search(at, ir.end(), match, record); at = match.suffix().first)
        values[names[match[2]]].push_back(match[1]);
    return values;
}

TEST_F(CompilerEnvironment, KernelsBuiltForADebugger_SayWhereTheirVariablesAre) {
    constexpr const char* text = "kernel void k(global int* a, int factor) {\n"
                                 "    int i = get_global_id(0), product = i * factor;\n"
                                 "    int changed = a[i];\n"
                                 "    if (changed) changed += product;\n"
                                 "    barrier(CLK_GLOBAL_MEM_FENCE);\n"
                                 "    a[i] = changed + product;\n}\n";
    const Environment environment{{"POCL_CACHE_DIR", folder().string()},
                                  {"POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES", "1"}};
    ASSERT_EQ(in_child(environment,
                       [] {
                           const Outcome built = build(text, "-g -cl-opt-disable");
                           int a[4] = {0, 1, 2, 3};
                           Launch{built, "k"}.set(0, &a[0]).set(1, 10).run(4, 4);
                           return std::to_string(a[1]) + " " + std::to_string(a[3]);
                       }),
              "21 63");
    std::ifstream file(folder() / "k.ll");
    const std::string ir{std::istreambuf_iterator<char>(file), {}};
    EXPECT_FALSE(contains(ir, "DW_OP_xderef")) << "an address space that no debugger here knows";
    const auto values = described_variables(ir);
    const auto is_described = [&](const char* name) {
        const auto found = values.find(name);
        return found != values.end() && std::any_of(found->second.begin(), found->second.end(),
                                                    [](const auto& value) { return contains(value, "%"); });
    };
    for (const char* name : {"a", "factor", "i", "product", "changed"})
        EXPECT_TRUE(is_described(name)) << name << "\n" << ir;
    // After the barrier no debug information has the last value of another work-item.
    const std::vector<std::string>& changes = values.at("changed");
    EXPECT_TRUE(
        std::any_of(changes.begin(), changes.end(), [](const auto& value) { return contains(value, "poison"); }));
}

}  // namespace
}  // namespace polder::compiler::test
