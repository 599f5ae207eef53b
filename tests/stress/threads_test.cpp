// Eight threads work in one context at once, each against a model of its own buffers in host memory, on queues
// that some of them share. The number of steps is bounded; nothing is timed.
#include "../api/support/fixture.h"

#include <algorithm>
#include <random>
#include <thread>

namespace polder::test {
namespace {

constexpr size_t threads = 8;
constexpr size_t steps = 150;
constexpr size_t values_per_buffer = 8192;

constexpr const char* source = R"(
kernel void add(global uint* values, uint amount) { values[get_global_id(0)] += amount; }
kernel void gather(global const uint* from, global uint* to) {
    to[get_global_id(0)] = from[get_global_size(0) - 1 - get_global_id(0)];
}
)";

class Threads : public ContextTest {
protected:
    // One buffer with what it must contain.
    struct Checked {
        OwnedMem buffer;
        std::vector<uint32_t> expected;
    };

    class Worker {
    public:
        Worker(Threads& test, cl_program program, std::vector<cl_command_queue> queues, uint32_t seed)
            : test_(test), queues_(std::move(queues)), random_(seed), add_(test.make_kernel(program, "add")),
              gather_(test.make_kernel(program, "gather")) {
            for (Checked& checked : checked_)
                renew(checked);
        }

        void run() {
            for (size_t step = 0; step < steps && !testing::Test::HasFailure(); ++step)
                one_step();
            for (Checked& checked : checked_)
                check(checked);
        }

    private:
        uint32_t pick(uint32_t bound) { return std::uniform_int_distribution<uint32_t>(0, bound - 1)(random_); }
        cl_command_queue any_queue() { return queues_[pick(static_cast<uint32_t>(queues_.size()))]; }

        void renew(Checked& checked) {
            checked.buffer = test_.make_buffer(values_per_buffer * sizeof(uint32_t));
            checked.expected.assign(values_per_buffer, random_());
            write(checked, 0, values_per_buffer);
        }

        // Each command is finished by an event wait before the next, as another queue may be chosen then.
        void wait(OwnedEvent& event) { EXPECT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS); }

        void write(Checked& checked, size_t first, size_t count) {
            OwnedEvent done;
            EXPECT_EQ(clEnqueueWriteBuffer(any_queue(), checked.buffer, CL_FALSE, first * 4, count * 4,
                                           checked.expected.data() + first, 0, nullptr, done.out()),
                      CL_SUCCESS);
            wait(done);
        }

        void check(Checked& checked) {
            std::vector<uint32_t> values(values_per_buffer);
            EXPECT_EQ(clEnqueueReadBuffer(any_queue(), checked.buffer, CL_TRUE, 0, values_per_buffer * 4, values.data(),
                                          0, nullptr, nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(values, checked.expected);
        }

        void add(Checked& checked) {
            const uint32_t amount = random_();
            const size_t count = 1 + pick(values_per_buffer);
            OwnedEvent done;
            EXPECT_EQ(clSetKernelArg(add_, 0, sizeof(cl_mem), checked.buffer.in()), CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(add_, 1, sizeof amount, &amount), CL_SUCCESS);
            EXPECT_EQ(clEnqueueNDRangeKernel(any_queue(), add_, 1, nullptr, &count, nullptr, 0, nullptr, done.out()),
                      CL_SUCCESS);
            wait(done);
            for (size_t i = 0; i < count; ++i)
                checked.expected[i] += amount;
        }

        void gather(const Checked& from, Checked& to) {
            const size_t count = values_per_buffer;
            OwnedEvent done;
            EXPECT_EQ(clSetKernelArg(gather_, 0, sizeof(cl_mem), from.buffer.in()), CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(gather_, 1, sizeof(cl_mem), to.buffer.in()), CL_SUCCESS);
            EXPECT_EQ(clEnqueueNDRangeKernel(any_queue(), gather_, 1, nullptr, &count, nullptr, 0, nullptr, done.out()),
                      CL_SUCCESS);
            wait(done);
            std::reverse_copy(from.expected.begin(), from.expected.end(), to.expected.begin());
        }

        void fill(Checked& checked) {
            const uint32_t value = random_();
            const size_t first = pick(values_per_buffer);
            const size_t count = pick(static_cast<uint32_t>(values_per_buffer - first)) + 1;
            OwnedEvent done;
            EXPECT_EQ(clEnqueueFillBuffer(any_queue(), checked.buffer, &value, 4, first * 4, count * 4, 0, nullptr,
                                          done.out()),
                      CL_SUCCESS);
            wait(done);
            std::fill_n(checked.expected.begin() + static_cast<ptrdiff_t>(first), count, value);
        }

        void map(Checked& checked) {
            cl_command_queue queue = any_queue();
            const size_t first = pick(values_per_buffer / 2);
            cl_int error = CL_INVALID_VALUE;
            auto* values =
                static_cast<uint32_t*>(clEnqueueMapBuffer(queue, checked.buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                          first * 4, 400, 0, nullptr, nullptr, &error));
            ASSERT_EQ(error, CL_SUCCESS);
            for (size_t i = 0; i < 100; ++i) {
                EXPECT_EQ(values[i], checked.expected[first + i]);
                values[i] = checked.expected[first + i] = random_();
            }
            OwnedEvent done;
            EXPECT_EQ(clEnqueueUnmapMemObject(queue, checked.buffer, values, 0, nullptr, done.out()), CL_SUCCESS);
            wait(done);
        }

        void one_step() {
            Checked& first = checked_[pick(3)];
            Checked& second = checked_[pick(3)];
            switch (pick(8)) {
            case 0: renew(first); break;
            case 1: check(first); break;
            case 2: fill(first); break;
            case 3: map(first); break;
            case 4:
                if (&first != &second)
                    gather(first, second);
                break;
            default: add(first); break;
            }
        }

        Threads& test_;
        std::vector<cl_command_queue> queues_;
        std::mt19937 random_;
        OwnedKernel add_;
        OwnedKernel gather_;
        Checked checked_[3];
    };
};

TEST_F(Threads, EightThreadsOnSharedQueuesSeeTheirOwnBuffersRight) {
    OwnedProgram program = build(source);
    std::vector<OwnedQueue> owned;
    std::vector<cl_command_queue> shared;
    for (cl_device_id device : devices)
        for (cl_command_queue_properties bits :
             {cl_command_queue_properties{0}, cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
            owned.push_back(make_queue(device, bits));
            shared.push_back(owned.back());
        }
    std::vector<std::thread> running;
    for (uint32_t i = 0; i < threads; ++i)
        running.emplace_back([&, i] { Worker(*this, program, shared, i).run(); });
    for (std::thread& thread : running)
        thread.join();
    for (const OwnedQueue& each : owned)
        EXPECT_EQ(clFinish(each), CL_SUCCESS);
}

TEST_F(Threads, EightThreadsRetainAndReleaseOneOfEverything) {
    OwnedProgram program = build(source);
    OwnedKernel kernel = make_kernel(program, "add");
    OwnedMem buffer = make_buffer(64);
    OwnedEvent event = make_user_event();
    std::vector<std::thread> running;
    for (size_t i = 0; i < threads; ++i)
        running.emplace_back([&] {
            for (size_t step = 0; step < 2000; ++step) {
                EXPECT_EQ(clRetainContext(context) | clRetainCommandQueue(queue) | clRetainMemObject(buffer) |
                              clRetainProgram(program) | clRetainKernel(kernel) | clRetainEvent(event),
                          CL_SUCCESS);
                EXPECT_EQ(clReleaseContext(context) | clReleaseCommandQueue(queue) | clReleaseMemObject(buffer) |
                              clReleaseProgram(program) | clReleaseKernel(kernel) | clReleaseEvent(event),
                          CL_SUCCESS);
            }
        });
    for (std::thread& thread : running)
        thread.join();
    cl_uint references = 0;
    EXPECT_EQ(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr), CL_SUCCESS);
    EXPECT_EQ(references, 1u);
}

TEST_F(Threads, UserEventsSetFromOtherThreadsReleaseChainsAcrossQueues) {
    OwnedMem buffer = make_buffer(64);
    std::vector<OwnedQueue> queues;
    for (size_t i = 0; i < threads; ++i)
        queues.push_back(make_queue(devices[i % devices.size()]));
    for (uint32_t round = 0; round < 50; ++round) {
        OwnedEvent gate = make_user_event();
        cl_event last = gate;
        std::vector<OwnedEvent> chain(threads);
        for (uint32_t i = 0; i < threads; ++i) {
            const uint32_t value = round * 100 + i;
            ASSERT_EQ(clEnqueueFillBuffer(queues[i], buffer, &value, 4, 0, 64, 1, &last, chain[i].out()), CL_SUCCESS);
            last = chain[i];
        }
        std::thread opener([&] { EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS); });
        EXPECT_EQ(clWaitForEvents(1, &last), CL_SUCCESS);
        opener.join();
        EXPECT_EQ(read<uint32_t>(buffer, 16), std::vector<uint32_t>(16, round * 100 + uint32_t{threads} - 1));
    }
}

// Each thread has programs of its own, which it builds with and without a callback, links, runs and releases.
TEST_F(Threads, EightThreadsBuildDifferentPrograms) {
    const auto build_some = [&](uint32_t number) {
        const OwnedQueue own = make_queue(devices[number % devices.size()]);
        const OwnedMem buffer = make_buffer(64);
        for (uint32_t round = 0; round < 3; ++round) {
            const std::string value = std::to_string(number * 10 + round);
            const OwnedProgram part = from_source("uint value(void) { return " + value + "u; }");
            const OwnedProgram main_part =
                from_source("uint value(void); kernel void k(global uint* a) { a[get_global_id(0)] = value(); }");
            EXPECT_EQ(clCompileProgram(part, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(clCompileProgram(main_part, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
            const cl_program inputs[] = {main_part, part};
            cl_int error = CL_INVALID_VALUE;
            const OwnedProgram linked = clLinkProgram(context, 0, nullptr, "", 2, inputs, nullptr, nullptr, &error);
            ASSERT_EQ(error, CL_SUCCESS);
            const OwnedKernel kernel = make_kernel(linked, "k");
            EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
            const size_t size = 16;
            EXPECT_EQ(clEnqueueNDRangeKernel(own, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(read<uint32_t>(buffer, 16, own), std::vector<uint32_t>(16, number * 10 + round));
            // A program that is released while it is built.
            const char* text = source;
            cl_program forgotten = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
            EXPECT_EQ(clBuildProgram(
                          forgotten, 0, nullptr, ("-DV=" + value).c_str(), [](cl_program, void*) {}, nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(clReleaseProgram(forgotten), CL_SUCCESS);
        }
    };
    std::vector<std::thread> running;
    for (uint32_t i = 0; i < threads; ++i)
        running.emplace_back(build_some, i);
    for (std::thread& thread : running)
        thread.join();
}

// Clones begin with the arguments of their source; from then on each is a thread's own.
TEST_F(Threads, EightThreadsSetTheArgumentsOfClonesOfOneKernel) {
    const OwnedProgram program = build(source);
    const OwnedKernel original = make_kernel(program, "add");
    const uint32_t unused = 0;
    ASSERT_EQ(clSetKernelArg(original, 1, sizeof unused, &unused), CL_SUCCESS);
    std::vector<std::thread> running;
    for (uint32_t number = 0; number < threads; ++number)
        running.emplace_back([&, number] {
            const OwnedQueue own = make_queue(devices[number % devices.size()]);
            const OwnedMem buffer = make_buffer(64);
            write(buffer, std::vector<uint32_t>(16, 0), own);
            uint32_t sum = 0;
            for (uint32_t round = 0; round < 200; ++round) {
                cl_int error = CL_INVALID_VALUE;
                const OwnedKernel clone = clCloneKernel(original, &error);
                const uint32_t amount = number + round;
                EXPECT_EQ(clSetKernelArg(clone, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
                EXPECT_EQ(clSetKernelArg(clone, 1, sizeof amount, &amount), CL_SUCCESS);
                const size_t size = 16;
                EXPECT_EQ(clEnqueueNDRangeKernel(own, clone, 1, nullptr, &size, nullptr, 0, nullptr, nullptr),
                          CL_SUCCESS);
                sum += amount;
            }
            EXPECT_EQ(read<uint32_t>(buffer, 16, own), std::vector<uint32_t>(16, sum));
        });
    for (std::thread& thread : running)
        thread.join();
}

} // namespace
} // namespace polder::test
