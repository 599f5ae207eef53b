// Updates of command buffers without memory, and what they cost. tests/api/support/command_buffer.h has the functions.
#include "../api/support/command_buffer.h"
#include "fault_sweep.h"

#include <limits>

namespace polder::test {
namespace {

// Commands that add one value and ten times the value to every number of `data`. An update sets both values in one call.
class CommandBufferFaults : public Faults {
protected:
    void SetUp() override {
        Faults::SetUp();
        data = make_buffer(bytes);
    }
    OwnedCommandBuffer make_updatable(size_t pairs) {
        OwnedCommandBuffer made = make_command_buffer(queues[0], CL_COMMAND_BUFFER_MUTABLE_KHR);
        const cl_int zero = 0;
        const size_t items = ints;
        EXPECT_EQ(clSetKernelArg(add, 0, sizeof(cl_mem), data.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(add, 1, sizeof zero, &zero), CL_SUCCESS);
        for (size_t i = 0; i < 2 * pairs; ++i) {
            cl_mutable_command_khr* const handle = i < commands.size() ? &commands[i] : nullptr;
            EXPECT_EQ(functions().Kernel(made, nullptr, nullptr, add, 1, nullptr, &items, nullptr, 0, nullptr, nullptr,
                                         handle),
                      CL_SUCCESS);
        }
        EXPECT_EQ(functions().Finalize(made), CL_SUCCESS);
        return made;
    }
    cl_int update(cl_command_buffer_khr made, cl_int value) {
        const std::array<cl_int, 2> values{value, 10 * value};
        std::array<cl_mutable_dispatch_arg_khr, 2> arguments{};
        std::array<DispatchConfig, 2> configs{};
        std::array<const void*, 2> list{};
        const std::array<cl_uint, 2> types{};
        for (size_t i = 0; i < 2; ++i) {
            arguments[i] = {1, sizeof(cl_int), &values[i]};
            configs[i].command = commands[i];
            configs[i].num_args = 1;
            configs[i].arg_list = &arguments[i];
            list[i] = &configs[i];
        }
        return functions().Update(made, 2, types.data(), list.data());
    }
    void clear() {
        const cl_int zero = 0;
        EXPECT_EQ(clEnqueueFillBuffer(queues[0], data, &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    }
    cl_int sum() {
        EXPECT_EQ(clEnqueueReadBuffer(queues[0], data, CL_TRUE, 0, bytes, seen.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [&](cl_int each) { return each == seen[0]; }));
        return seen[0];
    }
    template <class Call>
    static uint64_t bytes_of(const Call& call) {
        const uint64_t before = allocated_bytes();
        EXPECT_EQ(call(), CL_SUCCESS);
        return allocated_bytes() - before;
    }

    OwnedMem data;
    std::array<cl_mutable_command_khr, 2> commands{};
};

TEST_F(CommandBufferFaults, UpdateEnqueueAndRelease) {
    sweep([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_command_queue on = queues[0];
        const cl_properties properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_MUTABLE_KHR, 0};
        const cl_command_buffer_khr made = functions().CreateCommandBuffer(1, &on, properties, &error);
        if (!answers.note(error))
            return;
        const cl_int one = 1;
        const size_t items = ints;
        answers.note(clSetKernelArg(add, 0, sizeof(cl_mem), data.in()));
        answers.note(clSetKernelArg(add, 1, sizeof one, &one));
        bool is_recorded = true;
        for (cl_mutable_command_khr& command : commands)
            is_recorded =
                is_recorded && answers.note(functions().Kernel(made, nullptr, nullptr, add, 1, nullptr, &items, nullptr,
                                                               0, nullptr, nullptr, &command));
        if (is_recorded && answers.note(functions().Finalize(made))) {
            answers.note(update(made, 3));
            answers.note(functions().Enqueue(0, nullptr, made, 0, nullptr, nullptr));
        }
        answers.note(functions().Release(made));
    });
}

// Each allocation of an update, and of the enqueue that has to make a schedule, fails in turn. The buffer then executes what it did
// before, or all of the update; an enqueue that fails executes nothing, and the next one succeeds.
TEST_F(CommandBufferFaults, UpdatesWithoutMemory_ChangeEverythingOrNothing) {
    const OwnedCommandBuffer made = make_updatable(1);
    const auto enqueue = [&] { return functions().Enqueue(0, nullptr, made, 0, nullptr, nullptr); };
    bool struck = true;
    int failed_updates = 0, failed_enqueues = 0;
    for (int64_t n = 0; struck && !HasFailure(); ++n) {
        SCOPED_TRACE(n);
        ASSERT_LT(n, 5000);
        ASSERT_EQ(update(made, 1), CL_SUCCESS);
        ASSERT_EQ(enqueue(), CL_SUCCESS);
        clear();
        ASSERT_EQ(clFinish(queues[0]), CL_SUCCESS);
        // The update drops the schedule, so that the next enqueue would show half of an update.
        ASSERT_EQ(update(made, 1), CL_SUCCESS);
        Answers answers;
        bool is_updated = false, is_enqueued = false;
        {
            const Injection injection{Fault::host_memory, n};
            is_updated = answers.note(update(made, 2));
            is_enqueued = answers.note(enqueue());
            struck = Injection::has_struck();
        }
        EXPECT_TRUE(answers.are_all_of_resources()) << answers.text();
        const cl_int expected = is_updated ? 22 : 11;
        EXPECT_EQ(sum(), is_enqueued ? expected : 0);
        clear();
        ASSERT_EQ(enqueue(), CL_SUCCESS);
        EXPECT_EQ(sum(), expected);
        failed_updates += is_updated ? 0 : 1;
        failed_enqueues += is_enqueued ? 0 : 1;
    }
    EXPECT_GT(failed_updates, 0);
    EXPECT_GT(failed_enqueues, 0);
}

// Memory shows what is made: slots and schedules have a size for each command.
TEST_F(CommandBufferFaults, UpdatesMakeNothingForCommandsThatStay_AndOneScheduleServesAllUpdatesBeforeIt) {
    std::array<uint64_t, 2> of_update{}, of_first{}, of_more_updates{}, of_second{};
    const std::array<size_t, 2> pairs{4, 1000};
    for (size_t i = 0; i < pairs.size(); ++i) {
        const OwnedCommandBuffer made = make_updatable(pairs[i]);
        const auto enqueue = [&] { return functions().Enqueue(0, nullptr, made, 0, nullptr, nullptr); };
        of_update[i] = of_first[i] = of_second[i] = std::numeric_limits<uint64_t>::max();
        // The least of several rounds: lists of freed objects, and the queue's list of operations, grow at some of them.
        for (cl_int round = 0; round < 12; ++round) {
            of_update[i] = std::min(of_update[i], bytes_of([&] { return update(made, round); }));
            of_first[i] = std::min(of_first[i], bytes_of(enqueue));
            finish_all();
            of_second[i] = std::min(of_second[i], bytes_of(enqueue));
            finish_all();
        }
        of_more_updates[i] = bytes_of([&] {
            for (cl_int value = 0; value < 100; ++value)
                EXPECT_EQ(update(made, value), CL_SUCCESS);
            return CL_SUCCESS;
        });
        ASSERT_EQ(enqueue(), CL_SUCCESS);
        finish_all();
    }
    // A list of 2,000 pointers takes 16,000 bytes, the one of the slots several times as much.
    EXPECT_LT(of_update[1], of_update[0] + 12000);
    EXPECT_LT(of_more_updates[1], of_more_updates[0] + 400000);
    EXPECT_GT(of_first[1], of_second[1] + 16000)
        << "the first enqueue after an update makes the schedule, the second one has it";
}

}  // namespace
}  // namespace polder::test
