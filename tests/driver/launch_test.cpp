// Kernels.
#include "conformance.h"
#include "kernels.h"

#include <algorithm>
#include <array>
#include <thread>

namespace polder::conformance {
namespace {

struct Range {
    uint32_t work_dim;
    std::array<uint64_t, 3> offset;
    std::array<uint64_t, 3> global;
    std::array<uint64_t, 3> local;
};

} // namespace

TEST_P(DriverConformance, EveryWorkItemRunsOnce) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    const Range ranges[] = {
        {1, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}},
        {1, {0, 0, 0}, {1000, 1, 1}, {10, 1, 1}},
        {1, {5, 0, 0}, {1001, 1, 1}, {64, 1, 1}},
        {1, {0, 0, 0}, {100000, 1, 1}, {1, 1, 1}},
        {2, {3, 4, 0}, {37, 19, 1}, {8, 4, 1}},
        {2, {0, 0, 0}, {1024, 512, 1}, {16, 16, 1}},
        {3, {1, 2, 3}, {17, 13, 11}, {4, 4, 4}},
        {3, {0, 0, 0}, {64, 64, 64}, {8, 8, 8}},
        {1, {1ull << 40, 0, 0}, {256, 1, 1}, {64, 1, 1}},
        {2, {0, 0, 0}, {1, 5000, 1}, {1, 7, 1}},
    };
    const auto queue = make_queue();
    const auto kernel = load({.function = CountVisits::run});
    const auto& language = device().info().language;
    const bool has_uneven_groups = !language || language->work_groups == driver::LanguageLimits::WorkGroups::any;
    for (const Range& range : ranges) {
        bool is_even = true;
        for (size_t d = 0; d < 3; ++d)
            is_even &= range.global[d] % range.local[d] == 0;
        if (!is_even && !has_uneven_groups)
            continue;
        const uint64_t items = range.global[0] * range.global[1] * range.global[2];
        const DeviceBytes out(device(), items * 4);
        const std::array<std::byte, 4> zero{};
        // Several launches, so that what the driver learns about running times is used too.
        constexpr uint32_t launches = 5;
        static_cast<void>(queue->fill({out.at(), items * 4, zero}, {}));
        for (uint32_t i = 0; i < launches; ++i) {
            const CountVisits arguments{out.at().value};
            driver::LaunchOperation operation = launch_of(*kernel, arguments);
            operation.work_dim = range.work_dim;
            std::copy(range.offset.begin(), range.offset.end(), operation.global_offset);
            std::copy(range.global.begin(), range.global.end(), operation.global_size);
            std::copy(range.local.begin(), range.local.end(), operation.local_size);
            static_cast<void>(queue->launch(operation, {}));
        }
        std::vector<uint32_t> visits(items);
        wait(download(*queue, visits.data(), out.at(), items * 4));
        ASSERT_TRUE(std::all_of(visits.begin(), visits.end(), [](uint32_t count) { return count == launches; }))
            << "global size " << range.global[0] << " x " << range.global[1] << " x " << range.global[2];
    }
}

TEST_P(DriverConformance, WorkGroupsHaveTheirOwnAlignedLocalAndScratchMemory) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    constexpr uint64_t groups = 200;
    constexpr uint64_t items = 16;
    const auto queue = make_queue();
    const DeviceBytes out(device(), groups * 4);
    for (const uint64_t local : {64ull, 1000ull, 20000ull}) {
        const auto kernel =
            load({.function = CheckWorkspace::run, .local_bytes = local, .scratch_bytes_per_work_item = 100});
        const CheckWorkspace arguments{out.at().value, local, local + 256, 100 * items + 4096};
        driver::LaunchOperation operation = launch_of(*kernel, arguments);
        operation.global_size[0] = groups * items;
        operation.local_size[0] = items;
        operation.local_argument_bytes = 256;
        wait(queue->launch(operation, {}));
        std::vector<uint32_t> wrong(groups, 1);
        wait(download(*queue, wrong.data(), out.at(), groups * 4));
        EXPECT_EQ(wrong, std::vector<uint32_t>(groups, 0));
    }
}

TEST_P(DriverConformance, ArgumentsAreCopiedAndPointersTranslated) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    constexpr uint64_t count = 500;
    const auto queue = make_queue();
    const DeviceBytes in(device(), count * 4);
    const DeviceBytes out(device(), count * 4);
    const DeviceBytes variables(device(), 64);
    std::vector<uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 1);
    // A device that compiles the source has variables of its own; the suite's source has none.
    const uint32_t variable = device().info().language ? 0 : 1000;
    static_cast<void>(upload(*queue, in.at(), numbers.data(), count * 4));
    static_cast<void>(upload(*queue, variables.at(), &variable, 4));
    const auto kernel = load({.function = Scale::run});
    {
        Scale arguments{out.at().value, in.at().value, 3};
        driver::LaunchOperation operation = launch_of(*kernel, arguments);
        operation.global_size[0] = count;
        operation.local_size[0] = 50;
        operation.program_variables = variables.at();
        static_cast<void>(queue->launch(operation, {}));
        arguments = {0, 0, 0};
    }
    std::vector<uint32_t> result(count);
    wait(download(*queue, result.data(), out.at(), count * 4));
    for (uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(result[i], numbers[i] * 3 + variable);
}

TEST_P(DriverConformance, LaunchesDependOnTransfersThroughWaits) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    constexpr uint64_t count = 4096;
    const auto transfers = make_queue(driver::QueueRole::transfer_in);
    const auto compute = make_queue();
    const DeviceBytes in(device(), count * 4);
    const DeviceBytes out(device(), count * 4);
    const auto kernel = load({.function = Scale::run});
    for (uint32_t round = 1; round <= 50; ++round) {
        const std::vector<uint32_t> numbers(count, round);
        const std::array arrived{upload(*transfers, in.at(), numbers.data(), count * 4)};
        const Scale arguments{out.at().value, in.at().value, 2};
        driver::LaunchOperation operation = launch_of(*kernel, arguments);
        operation.global_size[0] = count;
        operation.local_size[0] = 64;
        static_cast<void>(compute->launch(operation, {arrived}));
        std::vector<uint32_t> result(count);
        wait(download(*compute, result.data(), out.at(), count * 4));
        ASSERT_EQ(result, std::vector<uint32_t>(count, 2 * round));
    }
}

TEST_P(DriverConformance, SeveralQueuesLaunchAtOnce) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    constexpr uint64_t count = 1 << 14;
    constexpr int thread_count = 4;
    const auto kernel = load({.function = CountVisits::run, .local_bytes = 128});
    std::array<std::thread, thread_count> threads;
    for (std::thread& thread : threads)
        thread = std::thread([&] {
            const auto queue = make_queue();
            const DeviceBytes out(device(), count * 4);
            const std::array<std::byte, 1> zero{};
            static_cast<void>(queue->fill({out.at(), count * 4, zero}, {}));
            constexpr uint32_t launches = 40;
            const CountVisits arguments{out.at().value};
            for (uint32_t i = 0; i < launches; ++i) {
                driver::LaunchOperation operation = launch_of(*kernel, arguments);
                operation.global_size[0] = count;
                operation.local_size[0] = 64;
                const Timepoint point = queue->launch(operation, {});
                if (i % 8 == 0)
                    wait(point);
            }
            std::vector<uint32_t> visits(count);
            wait(download(*queue, visits.data(), out.at(), count * 4));
            EXPECT_EQ(visits, std::vector<uint32_t>(count, launches));
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST_P(DriverConformance, KernelsWithLargePrivateArraysRunFromSmallThreads) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    const auto kernel = load({.function = DeepStack::run, .stack_bytes = DeepStack::stack_bytes});
    const DeviceBytes out(device(), 4 * 4);
    auto body = [&] {
        const auto queue = make_queue();
        const DeepStack arguments{out.at().value};
        driver::LaunchOperation operation = launch_of(*kernel, arguments);
        operation.global_size[0] = 4;
        wait(queue->launch(operation, {}));
    };
    using Body = decltype(body);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void* data) -> void* {
                      (*static_cast<Body*>(data))();
                      return nullptr;
                  },
                  &body),
              0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    std::array<uint32_t, 4> sums{};
    const auto queue = make_queue();
    wait(download(*queue, sums.data(), out.at(), 16));
    for (const uint32_t sum : sums)
        EXPECT_EQ(sum, (DeepStack::stack_bytes - 65536 + 4095) / 4096);
}

TEST_P(DriverConformance, LoadedKernel_HasTheLimitsOfItsCode) {
    if (!executes_on_host())
        GTEST_SKIP() << "only the device knows them";
    const auto kernel = load({.function = CountVisits::run,
                              .local_bytes = 384,
                              .private_bytes_per_work_item = 48,
                              .preferred_multiple = 16});
    EXPECT_EQ(kernel->limits().local_bytes, 384u);
    EXPECT_EQ(kernel->limits().private_bytes_per_work_item, 48u);
    EXPECT_EQ(kernel->limits().preferred_multiple, 16u);
    EXPECT_EQ(kernel->limits().max_work_group_size, 0u);
}

TEST_P(DriverConformance, AKernelThatNoStackHoldsIsRefused) {
    if (!executes_on_host())
        GTEST_SKIP() << "has no stack of the host";
    const auto kernel = device().load(driver::HostCode{.function = DeepStack::run, .stack_bytes = uint64_t{1} << 40});
    ASSERT_FALSE(kernel.has_value());
    EXPECT_EQ(kernel.error().status(), Status::out_of_resources);
}

TEST_P(DriverConformance, PrintedTextsComeOutWholeBeforeTheLaunchIsComplete) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    const auto print = [](const std::byte*, const LaunchContext* context, const uint64_t* group, std::byte*,
                          std::byte*) {
        const std::string text = "group " + std::to_string(group[0]) + "\n";
        context->print(context->print_user, text.data(), text.size());
    };
    const auto kernel = load({.function = print}, Prints::yes);
    const auto queue = make_queue();
    driver::LaunchOperation operation;
    operation.kernel = kernel.get();
    operation.global_size[0] = 50;
    testing::internal::CaptureStdout();
    wait(queue->launch(operation, {}));
    const std::string text = testing::internal::GetCapturedStdout();
    for (int group = 0; group < 50; ++group)
        EXPECT_NE(text.find("group " + std::to_string(group) + "\n"), std::string::npos);
}

TEST_P(DriverConformance, LaunchTimesEncloseTheWork) {
    if (!executes_tests_kernels())
        GTEST_SKIP() << "needs kernels of its own";
    const auto kernel = load({.function = CountVisits::run});
    const DeviceBytes out(device(), 1024 * 4);
    const auto queue = make_queue();
    const CountVisits arguments{out.at().value};
    driver::LaunchOperation operation = launch_of(*kernel, arguments);
    operation.global_size[0] = 1024;
    operation.local_size[0] = 16;
    driver::OperationTimes first;
    driver::OperationTimes second;
    static_cast<void>(queue->launch(operation, {{}, &first}));
    wait(queue->launch(operation, {{}, &second}));
    EXPECT_NE(first.start_ns.load(), 0u);
    EXPECT_LE(first.start_ns.load(), first.end_ns.load());
    EXPECT_LE(first.end_ns.load(), second.start_ns.load());
    EXPECT_LE(second.start_ns.load(), second.end_ns.load());
}

TEST_P(DriverConformance, TimesThatOperationsShareAreTheFirstsStartAndTheLastsEnd) {
    struct Clock {
        driver::Device& device;
        uint64_t seen_ns = 0;
        static void look(void* data) {
            auto* const clock = static_cast<Clock*>(data);
            clock->seen_ns = clock->device.now_ns();
        }
    };
    Clock first{device()};
    Clock last{device()};
    const auto queue = make_queue();
    driver::OperationTimes times;
    static_cast<void>(queue->call({Clock::look, &first}, {{}, &times}));
    wait(queue->call({Clock::look, &last}, {{}, &times}));
    EXPECT_NE(times.start_ns.load(), 0u);
    EXPECT_LE(times.start_ns.load(), first.seen_ns);
    EXPECT_GE(times.end_ns.load(), last.seen_ns);
}

TEST_P(DriverConformance, SubDevicesComputeInTheSameMemory) {
    const driver::DeviceInfo& info = device().info();
    if (info.max_sub_devices < 2)
        GTEST_SKIP() << "cannot be divided";
    const std::array<uint32_t, 1> unit{info.compute_units - 1};
    auto sub_device = device().create_sub_device(unit);
    ASSERT_TRUE(sub_device.has_value());
    EXPECT_EQ((*sub_device)->info().compute_units, 1u);
    EXPECT_EQ((*sub_device)->info().space, info.space);
    constexpr uint64_t count = 10000;
    const DeviceBytes memory(device(), count * 4);
    const auto queue = make_queue(**sub_device);
    const auto parent_queue = make_queue();
    const std::array<std::byte, 1> zero{};
    const std::array cleared{parent_queue->fill({memory.at(), count * 4, zero}, {})};
    auto kernel = (*sub_device)->load(code_of({.function = CountVisits::run}));
    ASSERT_TRUE(kernel.has_value());
    const CountVisits arguments{memory.at().value};
    driver::LaunchOperation operation = launch_of(**kernel, arguments);
    operation.global_size[0] = count;
    operation.local_size[0] = 10;
    const std::array launched{queue->launch(operation, {cleared})};
    std::vector<uint32_t> visits(count);
    wait(download(*parent_queue, visits.data(), memory.at(), count * 4, launched));
    EXPECT_EQ(visits, std::vector<uint32_t>(count, 1));
}

TEST_P(DriverConformance, TheDeviceDescribesItself) {
    const driver::DeviceInfo& info = device().info();
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.vendor.empty());
    EXPECT_FALSE(info.driver_version.empty());
    EXPECT_GE(info.compute_units, 1u);
    EXPECT_GE(info.max_work_group_size, 1u);
    EXPECT_GT(info.memory_bytes, 0u);
    EXPECT_GE(info.code.local_memory_bytes, 32u * 1024);
    EXPECT_TRUE(info.space.is_host() || info.space == SpaceId{1});
    for (const driver::AffinityDomain& domain : device().affinity_domains()) {
        EXPECT_GT(domain.groups.size(), 1u);
        for (const auto& group : domain.groups)
            for (const uint32_t unit : group)
                EXPECT_LT(unit, info.compute_units);
    }
}

} // namespace polder::conformance
