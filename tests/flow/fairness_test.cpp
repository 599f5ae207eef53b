// Two contexts share a discrete device whose memory is too small for the buffers of either: both make progress. Each side's threads run commands without end until
// both sides have completed enough of them. A side that gets ahead too far ends the test, which then fails: the other side starves.
// Commands are counted; nothing is timed.
#include "../api/support/fixture.h"

#include <CL/cl.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t MiB = size_t{1} << 20;

constexpr const char* kernels = R"(
kernel void add(global int* first, global int* second) {
    size_t i = get_global_id(0);
    first[i] += 1;
    second[i] += 1;
}
)";
constexpr size_t items = 1024;

// What the threads of one side do. A launch uses two neighbours of a thread's buffers.
struct Load {
    size_t threads = 3;
    size_t buffer_bytes = 2 * MiB;
    size_t buffers = 3;  // of each thread
    size_t ahead = 1;  // launches that are enqueued before the thread waits for them
    bool copies = false;  // buffers are written and read instead
};

struct Case {
    const char* name;
    Load one, other;
    // A side may complete at most this many times as many commands as the other.
    size_t ratio = 200;
};

void PrintTo(const Case& of, std::ostream* to) { *to << of.name; }

class Race {
public:
    static constexpr size_t enough = 150;
    explicit Race(size_t ratio) : most_(enough * ratio) {}

    // A thread of `side` has completed `count` commands.
    void advance(size_t side, size_t count) {
        const size_t now = completed_[side].fetch_add(count) + count;
        if (now >= most_ || (now >= enough && completed_[1 - side] >= enough))
            is_over_ = true;
    }
    void give_up() { is_over_ = true; }
    [[nodiscard]] bool is_over() const { return is_over_; }
    [[nodiscard]] size_t completed(size_t side) const { return completed_[side]; }

private:
    const size_t most_;
    std::array<std::atomic<size_t>, 2> completed_{};
    std::atomic<bool> is_over_{false};
};

class Fairness : public ContextTest, public testing::WithParamInterface<Case> {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu discrete\"";
    }

    // One context with a program, used by the threads of one side.
    struct Side {
        explicit Side(const std::vector<cl_device_id>& devices) {
            cl_int error = CL_SUCCESS;
            context = clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr,
                                      &error);
            EXPECT_EQ(error, CL_SUCCESS);
            const char* text = kernels;
            program = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
            EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
        }
        OwnedContext context;
        OwnedProgram program;
    };

    // One thread: its own queue and buffers, and how often each buffer was changed.
    class Worker {
    public:
        Worker(const Side& side, cl_device_id device, const Load& load) : load_(load), changes_(load.buffers) {
            cl_int error = CL_SUCCESS;
            queue_ = clCreateCommandQueueWithProperties(side.context, device, nullptr, &error);
            add_ = clCreateKernel(side.program, "add", &error);
            EXPECT_EQ(error, CL_SUCCESS);
            for (size_t i = 0; i < load.buffers; ++i) {
                buffers_.emplace_back(
                    clCreateBuffer(side.context, CL_MEM_READ_WRITE, load.buffer_bytes, nullptr, &error));
                fill(i, 0);
            }
        }

        void run(Race& race, size_t side) {
            while (!race.is_over() && !is_failed_) {
                for (size_t i = 0; i < load_.ahead; ++i, ++next_)
                    if (load_.copies)
                        copy(next_ % load_.buffers);
                    else
                        launch(next_ % load_.buffers, (next_ + 1) % load_.buffers);
                check(clFinish(queue_));
                completed_ += load_.ahead;
                race.advance(side, load_.ahead);
            }
            if (is_failed_)
                race.give_up();
            for (size_t i = 0; i < load_.buffers; ++i)
                expect_content(i);
        }
        [[nodiscard]] size_t completed() const { return completed_; }
        [[nodiscard]] bool is_failed() const { return is_failed_; }

    private:
        void check(cl_int result) { is_failed_ = is_failed_ || result != CL_SUCCESS; }
        void fill(size_t index, cl_int value) {
            check(clEnqueueFillBuffer(queue_, buffers_[index], &value, sizeof value, 0, load_.buffer_bytes, 0, nullptr,
                                      nullptr));
        }
        void launch(size_t one, size_t other) {
            check(clSetKernelArg(add_, 0, sizeof(cl_mem), buffers_[one].in()));
            check(clSetKernelArg(add_, 1, sizeof(cl_mem), buffers_[other].in()));
            check(clEnqueueNDRangeKernel(queue_, add_, 1, nullptr, &items, nullptr, 0, nullptr, nullptr));
            ++changes_[one];
            ++changes_[other];
        }
        void copy(size_t index) {
            fill(index, ++changes_[index]);
            expect_content(index);
        }
        void expect_content(size_t index) {
            std::vector<cl_int> seen(items);
            check(clEnqueueReadBuffer(queue_, buffers_[index], CL_TRUE, 0, items * sizeof(cl_int), seen.data(), 0,
                                      nullptr, nullptr));
            is_failed_ = is_failed_ || std::ranges::count(seen, changes_[index]) != static_cast<ptrdiff_t>(items);
        }

        const Load load_;
        OwnedQueue queue_;
        OwnedKernel add_;
        std::vector<OwnedMem> buffers_;
        std::vector<cl_int> changes_;
        size_t next_ = 0;
        size_t completed_ = 0;
        bool is_failed_ = false;  // an error or a wrong byte
    };
};

TEST_P(Fairness, NeitherOfTwoContextsStarves) {
    const std::array<Load, 2> loads{GetParam().one, GetParam().other};
    Race race(GetParam().ratio);
    std::vector<std::unique_ptr<Side>> sides;
    std::array<std::vector<std::unique_ptr<Worker>>, 2> workers;
    for (size_t side = 0; side < 2; ++side) {
        sides.push_back(std::make_unique<Side>(devices));
        for (size_t i = 0; i < loads[side].threads; ++i)
            workers[side].push_back(std::make_unique<Worker>(*sides[side], devices[1], loads[side]));
    }
    std::vector<std::thread> threads;
    for (size_t side = 0; side < 2; ++side)
        for (const auto& worker : workers[side])
            threads.emplace_back([&race, &worker, side] { worker->run(race, side); });
    for (std::thread& thread : threads)
        thread.join();
    std::string progress;
    for (size_t side = 0; side < 2; ++side) {
        progress += side == 0 ? "completed by each thread:" : " and";
        for (const auto& worker : workers[side]) {
            EXPECT_FALSE(worker->is_failed()) << "side " << side;
            progress += " " + std::to_string(worker->completed());
        }
    }
    RecordProperty("progress", progress);
    for (size_t side = 0; side < 2; ++side) {
        EXPECT_GE(race.completed(side), Race::enough) << "side " << side << " starves; " << progress;
        for (const auto& worker : workers[side])
            EXPECT_NE(worker->completed(), 0u) << "a thread of side " << side << " starves; " << progress;
    }
}

// The device's memory is 16 MiB.
constexpr Load several{.threads = 3, .buffer_bytes = 2 * MiB, .buffers = 3, .ahead = 1, .copies = false};
constexpr Load ahead{.threads = 3, .buffer_bytes = 2 * MiB, .buffers = 3, .ahead = 16, .copies = false};
constexpr Load large{.threads = 2, .buffer_bytes = 7 * MiB, .buffers = 3, .ahead = 1, .copies = false};
constexpr Load small{.threads = 3, .buffer_bytes = MiB / 4, .buffers = 24, .ahead = 1, .copies = false};
constexpr Load many{.threads = 6, .buffer_bytes = 2 * MiB, .buffers = 3, .ahead = 1, .copies = false};
constexpr Load many_ahead{.threads = 6, .buffer_bytes = 2 * MiB, .buffers = 3, .ahead = 16, .copies = false};
constexpr Load alone{.threads = 1, .buffer_bytes = 2 * MiB, .buffers = 9, .ahead = 1, .copies = false};
constexpr Load copying{.threads = 3, .buffer_bytes = 2 * MiB, .buffers = 3, .ahead = 1, .copies = true};

INSTANTIATE_TEST_SUITE_P(
    Loads, Fairness,
    testing::Values(Case{"Alike", several, several}, Case{"OneEnqueuesAhead", ahead, several},
                    Case{"LargeBuffersAndSmallOnes", large, small},
                    Case{"LargeBuffersAndSmallOnesAhead", large,
                         Load{.threads = 3, .buffer_bytes = MiB / 4, .buffers = 24, .ahead = 16, .copies = false}},
                    Case{"ManyThreadsAndOne", many, alone}, Case{"ManyThreadsAheadAndOne", many_ahead, alone},
                    Case{"KernelsAndCopies", several, copying}),
    [](const auto& each) { return std::string{each.param.name}; });

}  // namespace
}  // namespace polder::test
