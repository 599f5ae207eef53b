// What the proxy driver promises beyond the interface: which libraries it takes, what it offers, and what failures become.
#include "proxy_driver.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <proxy/icd.h>
#include <proxy/icd_probe.h>
#include <proxy/vendors.h>
#include <thread>

namespace polder::conformance {
namespace {

namespace fs = std::filesystem;

// A copy of the fake ICD under another name, which behaves as `mode` says.
class MisbehavingIcd {
public:
    explicit MisbehavingIcd(const char* mode)
        : path_(fs::temp_directory_path() / ("polder-" + std::string(mode) + std::to_string(getpid()) + ".so")) {
        fs::copy_file(POLDER_FAKE_ICD, path_, fs::copy_options::overwrite_existing);
        setenv("FAKE_ICD", mode, 1);
    }
    MisbehavingIcd(const MisbehavingIcd&) = delete;
    MisbehavingIcd& operator=(const MisbehavingIcd&) = delete;
    ~MisbehavingIcd() {
        unsetenv("FAKE_ICD");
        fs::remove(path_);
    }
    [[nodiscard]] std::string path() const { return path_.string(); }
    [[nodiscard]] std::string parameters() const { return "icd=" + path(); }

private:
    const fs::path path_;
};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// --- libraries ---

TEST_F(ProxyDriver, LibrariesThatAreNoIcdAreRefusedWithAReason) {
    EXPECT_TRUE(contains(refusal("icd=libnothing-of-this-name.so"), "libnothing-of-this-name.so"));
    EXPECT_TRUE(contains(refusal("icd=libm.so.6"), "is no ICD"));
}

TEST_F(ProxyDriver, TheLoaderIsRefused) {
    if (!dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL))
        GTEST_SKIP() << "no OpenCL loader";
    EXPECT_TRUE(contains(refusal("icd=libOpenCL.so.1"), "is an OpenCL loader"));
}

TEST_F(ProxyDriver, AnIcdThatCrashesCostsAMessage) {
    const MisbehavingIcd icd("crash");
    EXPECT_TRUE(contains(refusal(icd.parameters()), "ends the process with signal 6 in clIcdGetPlatformIDsKHR"));
}

TEST_F(ProxyDriver, AnIcdThatCrashesLaterOrEndsTheProcessCostsAMessage) {
    {
        const MisbehavingIcd icd("crash-later");
        EXPECT_TRUE(contains(refusal(icd.parameters()), "ends the process with signal 6 in clGetDeviceIDs"));
    }
    const MisbehavingIcd icd("exit");
    EXPECT_TRUE(contains(refusal(icd.parameters()), "ends the process in clIcdGetPlatformIDsKHR"));
}

TEST_F(ProxyDriver, AnIcdThatLacksFunctionsIsRefused) {
    const MisbehavingIcd icd("poor");
    EXPECT_TRUE(contains(refusal(icd.parameters()), "fake device lacks functions of OpenCL 1.2"));
}

TEST_F(ProxyDriver, AnIcdThatHangsIsAbandoned) {
    const MisbehavingIcd icd("hang");
    const Result<void> probed = proxy::probe_icd(icd.path(), 300);
    ASSERT_FALSE(probed.has_value());
    EXPECT_TRUE(contains(std::string(probed.error().detail()), "it hangs in clIcdGetPlatformIDsKHR"));
}

TEST_F(ProxyDriver, AnIcdThatListsPolderIsRefused) {
    const MisbehavingIcd icd("polder");
    EXPECT_TRUE(contains(refusal(icd.parameters()), "lists Polder's own platform"));
}

TEST_F(ProxyDriver, PolderUnderAnotherPathIsRefused) {
    EXPECT_TRUE(contains(refusal("icd=" POLDER_LIBRARY), "lists Polder's own platform"));
}

TEST_F(ProxyDriver, PlatformsAndDevicesThatAreNotThereAreRefused) {
    EXPECT_TRUE(contains(refusal("device=1,icd=" POLDER_FAKE_ICD), "has 1 devices"));
    EXPECT_TRUE(contains(refusal("platform=3,icd=" POLDER_FAKE_ICD), "has 1 platforms"));
    const MisbehavingIcd icd("empty");
    EXPECT_TRUE(contains(refusal(icd.parameters()), "has 0 platforms"));
}

TEST_F(ProxyDriver, MalformedParametersAreReportedAndTheRestTaken) {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(open_at("device=x,speed=3,icd=" POLDER_FAKE_ICD).has_value());
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(contains(text, "\"device=x\", \"speed=3\" not understood")) << text;
}

TEST_F(ProxyDriver, POCL_DEVICESIsHiddenWhileAnotherImplementationStartsAndComesBack) {
    setenv("POCL_DEVICES", "cpu proxy", 1);
    static_cast<void>(device());
    EXPECT_STREQ(std::getenv("POCL_DEVICES"), "cpu proxy");
    unsetenv("POCL_DEVICES");
}

TEST(Vendors, AreListedAsTheLoaderListsThem) {
    const fs::path folder = fs::temp_directory_path() / ("polder-vendors" + std::to_string(getpid()));
    fs::create_directory(folder);
    std::ofstream(folder / "b.icd") << "libb.so\n";
    std::ofstream(folder / "a.icd") << "liba.so  \nsecond line\n";
    std::ofstream(folder / "empty.icd");
    std::ofstream(folder / "c.txt") << "libc.so\n";
    std::map<std::string, std::string> variables{{"OCL_ICD_VENDORS", folder}};
    const auto environment = [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    using List = std::vector<std::string>;
    EXPECT_EQ(proxy::listed_icds(environment), (List{"liba.so", "libb.so"}));
    variables["OCL_ICD_FILENAMES"] = "libz.so:liba.so";
    EXPECT_EQ(proxy::listed_icds(environment), (List{"libz.so", "liba.so", "libb.so"}));
    variables = {{"OCL_ICD_VENDORS", folder / "b.icd"}};
    EXPECT_EQ(proxy::listed_icds(environment), (List{"libb.so"}));
    variables = {{"OCL_ICD_VENDORS", "libdirect.so"}};
    EXPECT_EQ(proxy::listed_icds(environment), (List{"libdirect.so"}));
    fs::remove_all(folder);
}

// --- what is offered ---

TEST_F(ProxyDriver, OffersWhatPassesThroughAndNothingElse) {
    const driver::DeviceInfo& info = device().info();
    EXPECT_EQ(info.name, "fake device");
    EXPECT_EQ(info.type, driver::DeviceType::accelerator);
    EXPECT_EQ(info.compute_units, 3u);
    EXPECT_EQ(info.max_work_group_size, 1024u);
    EXPECT_EQ(info.max_work_item_sizes[1], 512u);
    EXPECT_EQ(info.memory_bytes, 64u << 20);
    EXPECT_EQ(info.base_address_alignment, 256u);
    EXPECT_EQ(info.code.format, driver::CodeFormat::opencl_c);
    ASSERT_TRUE(info.language.has_value());
    using List = std::vector<std::string>;
    EXPECT_EQ(info.language->extensions, (List{"cl_khr_byte_addressable_store", "cl_khr_fp64"}));
    EXPECT_EQ(info.language->features, (List{"__opencl_c_fp64", "__opencl_c_int64"}));
    EXPECT_EQ(info.language->versions, (std::vector<uint32_t>{CL_MAKE_VERSION(1, 2, 0), CL_MAKE_VERSION(3, 0, 0)}));
    EXPECT_TRUE(info.language->spirv_versions.empty());
    EXPECT_EQ(info.language->single_fp_config, uint64_t{CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST});
}

// --- failures ---

TEST_F(ProxyDriver, AContextOrAQueueThatCannotBeMadeIsAnError) {
    fail_call("clCreateContext", CL_OUT_OF_HOST_MEMORY);
    EXPECT_TRUE(contains(refusal("icd=" POLDER_FAKE_ICD), "fake device: clCreateContext: CL_OUT_OF_HOST_MEMORY (-6)"));
    mend("clCreateContext");
    fail_call("clCreateCommandQueue", CL_OUT_OF_RESOURCES);
    EXPECT_TRUE(contains(refusal("icd=" POLDER_FAKE_ICD), "clCreateCommandQueue: CL_OUT_OF_RESOURCES (-5)"));
    mend("clCreateCommandQueue");
    EXPECT_EQ(refusal("icd=" POLDER_FAKE_ICD), "opened");
}

TEST_F(ProxyDriver, OutOfMemoryIsAnErrorOfTheReservation) {
    for (const char* const call : {"clCreateBuffer", "clEnqueueWriteBuffer"}) {
        fail_call(call, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        const auto memory = device().reserve_memory(ByteCount{4096});
        ASSERT_FALSE(memory.has_value()) << call;
        EXPECT_EQ(memory.error().status(), Status::mem_object_allocation_failure);
        mend(call);
    }
    EXPECT_EQ(device().available_memory().value, device().info().memory_bytes);
    EXPECT_FALSE(device().reserve_memory(ByteCount{uint64_t{65} << 20}).has_value());
    EXPECT_FALSE(device().reserve_memory(ByteCount{UINT64_MAX - 5}).has_value());
    const auto memory = device().reserve_memory(ByteCount{4096});
    ASSERT_TRUE(memory.has_value());
    device().release_memory(*memory);
}

TEST_F(ProxyDriver, ACommandThatIsRefusedFailsAlone) {
    const DeviceBytes memory(device(), 8192);
    const auto queue = make_queue();
    const auto kernel = *device().load(fake_icd::code_of({.function = CountVisits::run}));
    const Bytes ones(64, std::byte{1});
    Bytes seen(64);
    const std::array<std::byte, 1> pattern{std::byte{9}};
    const CountVisits arguments{memory.at(4096).value};
    const driver::LaunchOperation launch = launch_of(*kernel, arguments);
    const driver::RectShape two_rows{8, 2, 1};
    const auto with_pitch = [](CopyOperation::End end) {
        end.layout = {16, 0};
        return end;
    };
    struct Case {
        const char* call;
        std::function<Timepoint()> command;
    };
    const Case cases[] = {
        {"clEnqueueWriteBuffer", [&] { return upload(*queue, memory.at(), ones); }},
        {"clEnqueueReadBuffer",
         [&] { return queue->copy({device_end(memory.at()), host_end(seen.data()), {64, 1, 1}}, {}); }},
        {"clEnqueueCopyBuffer",
         [&] { return queue->copy({device_end(memory.at()), device_end(memory.at(64)), {64, 1, 1}}, {}); }},
        {"clEnqueueWriteBufferRect",
         [&] {
             return queue->copy({with_pitch(host_end(ones.data())), with_pitch(device_end(memory.at())), two_rows}, {});
         }},
        {"clEnqueueReadBufferRect",
         [&] {
             return queue->copy({with_pitch(device_end(memory.at())), with_pitch(host_end(seen.data())), two_rows}, {});
         }},
        {"clEnqueueFillBuffer", [&] { return queue->fill({memory.at(), 64, pattern}, {}); }},
        {"clEnqueueNDRangeKernel", [&] { return queue->launch(launch, {}); }},
        // The argument differs each time, because arguments that stay the same are not set again.
        {"clSetKernelArg",
         [&, offset = uint64_t{0}]() mutable {
             const CountVisits others{memory.at(offset += 256).value};
             driver::LaunchOperation other = launch;
             other.arguments = packed(others);
             return queue->launch(other, {});
         }},
    };
    for (const Case& of : cases) {
        SCOPED_TRACE(of.call);
        EXPECT_EQ(status_of(of.command()), Status::success);
        fail_call(of.call, CL_OUT_OF_HOST_MEMORY);
        const Timepoint failed = of.command();
        const std::array waits{failed};
        const Timepoint after = queue->marker({waits});
        const Timepoint unrelated = queue->marker({});
        EXPECT_EQ(status_of(failed), Status::out_of_host_memory);
        EXPECT_EQ(status_of(after), Status::exec_status_error_for_events_in_wait_list);
        EXPECT_EQ(status_of(unrelated), Status::success);
        mend(of.call);
        EXPECT_EQ(status_of(of.command()), Status::success);
    }
}

TEST_F(ProxyDriver, ACommandThatFailsWhenItExecutesFailsAndSoDoesWhatWaitsForIt) {
    const DeviceBytes memory(device(), 4096);
    const auto first = make_queue();
    const auto second = make_queue();
    const Bytes ones(64, std::byte{1});
    EXPECT_EQ(status_of(upload(*first, memory.at(), ones)), Status::success);
    fail_call("execute", -9999);
    const std::array failed{upload(*first, memory.at(), ones)};
    const std::array after{upload(*second, memory.at(64), ones, failed)};
    EXPECT_EQ(status_of(after[0]), Status::exec_status_error_for_events_in_wait_list);
    EXPECT_TRUE(failed[0].is_complete());
    EXPECT_EQ(status_of(failed[0]), Status::out_of_resources);
    mend("execute");
    EXPECT_EQ(status_of(upload(*first, memory.at(), ones)), Status::success);
    EXPECT_EQ(status_of(upload(*second, memory.at(), ones)), Status::success);
}

TEST_F(ProxyDriver, ALostDeviceFailsEverythingAndOthersGoOn) {
    auto opened = open_at("memory=64M,icd=" POLDER_FAKE_ICD, 2);
    ASSERT_TRUE(opened.has_value());
    driver::Device& other = **opened;
    const auto queue = make_queue();
    const DeviceBytes memory(device(), 4096);
    const Bytes ones(64, std::byte{1});
    EXPECT_EQ(status_of(upload(*queue, memory.at(), ones)), Status::success);
    testing::internal::CaptureStderr();
    fail_call("clEnqueueFillBuffer", CL_DEVICE_NOT_AVAILABLE);
    const std::array<std::byte, 1> pattern{std::byte{9}};
    const Timepoint lost = queue->fill({memory.at(), 64, pattern}, {});
    EXPECT_EQ(status_of(lost), Status::out_of_resources);
    EXPECT_TRUE(
        contains(testing::internal::GetCapturedStderr(), "fake device is lost: a fill: CL_DEVICE_NOT_AVAILABLE (-2)"));
    mend("clEnqueueFillBuffer");
    // Nothing hangs, nothing succeeds.
    queue->flush();
    EXPECT_EQ(status_of(upload(*queue, memory.at(), ones)), Status::out_of_resources);
    EXPECT_FALSE(device().create_queue(driver::QueueRole::compute).has_value());
    EXPECT_FALSE(device().reserve_memory(ByteCount{4096}).has_value());
    EXPECT_FALSE(device().load(fake_icd::code_of({.function = CountVisits::run})).has_value());
    EXPECT_EQ(device().available_memory().value, 0u);

    const auto other_queue = std::move(*other.create_queue(driver::QueueRole::compute));
    const DeviceBytes other_memory(other, 4096);
    EXPECT_EQ(status_of(upload(*other_queue, other_memory.at(), ones)), Status::success);
}

TEST_F(ProxyDriver, WhatTheOtherCompilerRefusesIsItsLog) {
    driver::SourceProgram program{.id = 1u << 30, .units = {{.text = "kernel void k() { refused }"}}, .is_build = true};
    driver::TargetCode code;
    code.format = driver::CodeFormat::opencl_c;
    code.program = &program;
    code.entry = "k";
    for (const bool is_build : {true, false}) {
        program.is_build = is_build;
        const auto loaded = device().load(code);
        ASSERT_FALSE(loaded.has_value());
        const std::string text(loaded.error().detail());
        EXPECT_TRUE(contains(text, is_build ? "clBuildProgram" : "clCompileProgram")) << text;
        EXPECT_TRUE(contains(text, "fake: this text is refused")) << text;
    }
}

// --- kernels ---

TEST_F(ProxyDriver, ArgumentsThatStayTheSameAreSetOnce) {
    const auto calls = fake_icd::find<fake_icd::Calls>("fake_icd_calls");
    const DeviceBytes memory(device(), 65536);
    const auto queue = make_queue();
    const auto kernel = *device().load(fake_icd::code_of({.function = Scale::run}));
    const uint64_t before = calls("clSetKernelArg");
    for (uint32_t i = 0; i < 10; ++i) {
        const Scale arguments{memory.at().value, memory.at(4096).value, i / 5};
        static_cast<void>(queue->launch(launch_of(*kernel, arguments), {}));
    }
    EXPECT_EQ(status_of(queue->marker({})), Status::success);
    EXPECT_EQ(calls("clSetKernelArg") - before, 3u + 1u);
}

TEST_F(ProxyDriver, KernelsSeeTheBytesAtTheirAddressAlsoAfterARegionWasReplaced) {
    const auto queue = make_queue();
    const auto kernel = *device().load(fake_icd::code_of({.function = CountVisits::run}));
    const Bytes zeros(4096);
    for (uint32_t round = 0; round < 3; ++round) {
        const DeviceBytes memory(device(), 4096);
        const CountVisits arguments{memory.at(1024).value};
        static_cast<void>(upload(*queue, memory.at(), zeros));
        static_cast<void>(queue->launch(launch_of(*kernel, arguments), {}));
        Bytes seen(4096);
        EXPECT_EQ(status_of(queue->copy({device_end(memory.at()), host_end(seen.data()), {4096, 1, 1}}, {})),
                  Status::success);
        EXPECT_EQ(seen[1024], std::byte{1});
        EXPECT_EQ(seen[0], std::byte{0});
    }
}

TEST_F(ProxyDriver, NothingOfTheImplementationIsLeftBehind) {
    const auto live = fake_icd::find<fake_icd::Live>("fake_icd_live");
    const auto calls = fake_icd::find<fake_icd::Calls>("fake_icd_calls");
    const int64_t before = live();
    {
        auto opened = open_at("memory=64M,icd=" POLDER_FAKE_ICD);
        ASSERT_TRUE(opened.has_value());
        const auto queue = std::move(*(*opened)->create_queue(driver::QueueRole::compute));
        const DeviceBytes memory(**opened, 65536);
        const auto kernel = *(*opened)->load(fake_icd::code_of({.function = CountVisits::run}));
        const CountVisits arguments{memory.at(256).value};
        const driver::RectLayout pitch{1000, 0};
        Timepoint last;
        for (int i = 0; i < 20; ++i) {
            static_cast<void>(queue->launch(launch_of(*kernel, arguments), {}));
            last = queue->copy({{CopyOperation::Place::device, memory.at(), pitch},
                                {CopyOperation::Place::device, memory.at(32768), {900, 0}},
                                {500, 7, 1}},
                               {});
        }
        EXPECT_EQ(status_of(last), Status::success);
    }
    EXPECT_EQ(live(), before);
    EXPECT_EQ(calls("early release"), 0u);
}

TEST_F(ProxyDriver, TimesAreInOrderWhenTheImplementationHasNone) {
    fail_call("clGetEventProfilingInfo", CL_PROFILING_INFO_NOT_AVAILABLE);
    const DeviceBytes memory(device(), 4096);
    const auto queue = make_queue();
    const Bytes ones(64, std::byte{1});
    uint64_t last_ns = device().now_ns();
    for (int i = 0; i < 3; ++i) {
        driver::OperationTimes times;
        const Timepoint done = queue->copy({host_end(ones.data()), device_end(memory.at()), {64, 1, 1}}, {{}, &times});
        EXPECT_EQ(status_of(done), Status::success);
        EXPECT_LE(last_ns, times.start_ns.load());
        EXPECT_LE(times.start_ns.load(), times.end_ns.load());
        EXPECT_LE(times.end_ns.load(), device().now_ns());
        last_ns = times.end_ns.load();
    }
}

// A queue that takes times makes commands slower, so there is none until times are asked for.
TEST_F(ProxyDriver, TimesAreTakenFromTheFirstOperationThatAsksForThem) {
    const auto calls = fake_icd::find<fake_icd::Calls>("fake_icd_calls");
    const DeviceBytes memory(device(), 4096);
    const uint64_t before = calls("clCreateCommandQueue");
    const auto queue = make_queue();
    const Bytes ones(64, std::byte{1});
    const Bytes twos(64, std::byte{2});
    static_cast<void>(upload(*queue, memory.at(), ones));
    EXPECT_EQ(calls("clCreateCommandQueue") - before, 1u);
    driver::OperationTimes times;
    static_cast<void>(queue->copy({host_end(twos.data()), device_end(memory.at()), {64, 1, 1}}, {{}, &times}));
    Bytes seen(64);
    EXPECT_EQ(status_of(queue->copy({device_end(memory.at()), host_end(seen.data()), {64, 1, 1}}, {{}, &times})),
              Status::success);
    EXPECT_EQ(seen, twos);
    EXPECT_GT(times.end_ns.load(), 0u);
    EXPECT_EQ(calls("clCreateCommandQueue") - before, 2u);
}

TEST_F(ProxyDriver, WaitsThatFailDoNotLoseTheCommand) {
    const DeviceBytes memory(device(), 4096);
    const auto queue = make_queue();
    const Bytes ones(64, std::byte{1});
    fail_call("clFinish", CL_OUT_OF_RESOURCES);
    EXPECT_EQ(status_of(upload(*queue, memory.at(), ones)), Status::success);
    mend("clFinish");
    // An operation that is not the last of its queue is waited for by its event.
    fail_call("clWaitForEvents", CL_OUT_OF_RESOURCES);
    const Timepoint first = upload(*queue, memory.at(), ones);
    const Timepoint second = upload(*queue, memory.at(), ones);
    EXPECT_EQ(status_of(first), Status::success);
    EXPECT_EQ(status_of(second), Status::success);
    mend("clWaitForEvents");
    EXPECT_EQ(status_of(upload(*queue, memory.at(), ones)), Status::success);
}

}  // namespace
}  // namespace polder::conformance
