// The errors that all functions have in common that record a command, one after the other for each function; and those of the functions for
// whole command buffers.
#include "support/command_buffer.h"

#include <functional>

namespace polder::test {
namespace {

// What commands are recorded on.
struct Target {
    cl_command_buffer_khr buffer = nullptr;
    cl_command_queue queue = nullptr;
    const CommandProperty* properties = nullptr;
    cl_uint point_count = 0;
    const cl_sync_point_khr* points = nullptr;
};

// The memory objects of the commands, and a kernel with its arguments.
struct Operands {
    cl_mem from, to, from_image, to_image;
    cl_kernel kernel;
    void* svm;
};

struct Recorder {
    const char* name;
    bool has_memory;  // names memory objects or a kernel, which have a context
    std::function<cl_int(const Target&, const Operands&)> record;
};

constexpr size_t origin[3] = {0, 0, 0}, pixels[3] = {4, 4, 1}, row[3] = {16, 1, 1};
constexpr cl_uint color[4] = {1, 2, 3, 4};

const std::vector<Recorder>& recorders() {
    static const std::vector<Recorder> all = {
        {"barrier", false,
         [](const Target& on, const Operands&) {
             return functions().Barrier(on.buffer, on.queue, on.properties, on.point_count, on.points, nullptr,
                                        nullptr);
         }},
        {"copy", true,
         [](const Target& on, const Operands& of) {
             return functions().Copy(on.buffer, on.queue, on.properties, of.from, of.to, 0, 0, 16, on.point_count,
                                     on.points, nullptr, nullptr);
         }},
        {"copy of a rectangle", true,
         [](const Target& on, const Operands& of) {
             return functions().CopyRect(on.buffer, on.queue, on.properties, of.from, of.to, origin, origin, row, 0, 0,
                                         0, 0, on.point_count, on.points, nullptr, nullptr);
         }},
        {"fill", true,
         [](const Target& on, const Operands& of) {
             return functions().Fill(on.buffer, on.queue, on.properties, of.to, color, 4, 0, 16, on.point_count,
                                     on.points, nullptr, nullptr);
         }},
        {"copy of an image", true,
         [](const Target& on, const Operands& of) {
             return functions().CopyImage(on.buffer, on.queue, on.properties, of.from_image, of.to_image, origin,
                                          origin, pixels, on.point_count, on.points, nullptr, nullptr);
         }},
        {"image to buffer", true,
         [](const Target& on, const Operands& of) {
             return functions().ImageToBuffer(on.buffer, on.queue, on.properties, of.from_image, of.to, origin, pixels,
                                              0, on.point_count, on.points, nullptr, nullptr);
         }},
        {"buffer to image", true,
         [](const Target& on, const Operands& of) {
             return functions().BufferToImage(on.buffer, on.queue, on.properties, of.from, of.to_image, 0, origin,
                                              pixels, on.point_count, on.points, nullptr, nullptr);
         }},
        {"fill of an image", true,
         [](const Target& on, const Operands& of) {
             return functions().FillImage(on.buffer, on.queue, on.properties, of.to_image, color, origin, pixels,
                                          on.point_count, on.points, nullptr, nullptr);
         }},
        {"copy of SVM", false,
         [](const Target& on, const Operands& of) {
             return functions().SvmCopy(on.buffer, on.queue, on.properties, static_cast<char*>(of.svm) + 64, of.svm, 16,
                                        on.point_count, on.points, nullptr, nullptr);
         }},
        {"fill of SVM", false,
         [](const Target& on, const Operands& of) {
             return functions().SvmFill(on.buffer, on.queue, on.properties, of.svm, color, 4, 16, on.point_count,
                                        on.points, nullptr, nullptr);
         }},
        {"kernel", true,
         [](const Target& on, const Operands& of) {
             return functions().Kernel(on.buffer, on.queue, on.properties, of.kernel, 1, nullptr, row, nullptr,
                                       on.point_count, on.points, nullptr, nullptr);
         }},
    };
    return all;
}

// A context of its own on the first device, with operands.
class Side {
public:
    explicit Side(cl_device_id device) {
        cl_int error = CL_INVALID_VALUE;
        context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        for (OwnedQueue* queue : {&queue_, &second_queue_}) {
            *queue = clCreateCommandQueueWithProperties(context_, device, nullptr, &error);
            EXPECT_EQ(error, CL_SUCCESS);
        }
        const char* text = source;
        program_ = clCreateProgramWithSource(context_, 1, &text, nullptr, &error);
        EXPECT_EQ(clBuildProgram(program_, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
        kernel_ = clCreateKernel(program_, "k", &error);
        EXPECT_EQ(error, CL_SUCCESS);
        for (OwnedMem* memory : {&from_, &to_})
            *memory = clCreateBuffer(context_, CL_MEM_READ_WRITE, 256, nullptr, &error);
        for (OwnedMem* memory : {&from_image_, &to_image_})
            *memory = clCreateImage(context_, CL_MEM_READ_WRITE, &format, &extents, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel_, 0, sizeof(cl_mem), from_.in()), CL_SUCCESS);
        cl_device_svm_capabilities capabilities = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof capabilities, &capabilities, nullptr),
                  CL_SUCCESS);
        svm_ = capabilities != 0 ? clSVMAlloc(context_, CL_MEM_READ_WRITE, 256, 0) : nullptr;
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;
    ~Side() { clSVMFree(context_, svm_); }

    [[nodiscard]] cl_command_queue queue() const { return queue_; }
    [[nodiscard]] cl_command_queue second_queue() const { return second_queue_; }
    [[nodiscard]] Operands operands() const { return {from_, to_, from_image_, to_image_, kernel_, svm_}; }
    // The functions that this device has.
    [[nodiscard]] std::vector<Recorder> recorders_here() const {
        std::vector<Recorder> result = recorders();
        std::erase_if(result, [&](const Recorder& recorder) {
            return !svm_ && std::string_view(recorder.name).ends_with("SVM");
        });
        return result;
    }

private:
    static constexpr const char* source = "kernel void k(global uint* a) { a[get_global_id(0)] = 1; }";
    static constexpr cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    static constexpr cl_image_desc extents = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};

    OwnedContext context_;
    OwnedQueue queue_, second_queue_;
    OwnedProgram program_;
    OwnedKernel kernel_;
    OwnedMem from_, to_, from_image_, to_image_;
    void* svm_ = nullptr;
};

class CommandBufferErrors : public testing::Test {
protected:
    Side own{all_devices()[0]}, other{all_devices()[0]};
    OwnedCommandBuffer buffer = make_command_buffer(own.queue());

    // Every function reports `error` for this target.
    void expect(cl_int error, const Target& target) {
        for (const Recorder& recorder : own.recorders_here())
            EXPECT_EQ(recorder.record(target, own.operands()), error) << recorder.name;
    }
};

TEST_F(CommandBufferErrors, GoodArguments_AreRecorded) { expect(CL_SUCCESS, {buffer}); }

TEST_F(CommandBufferErrors, WithoutABuffer) { expect(CL_INVALID_COMMAND_BUFFER_KHR, {nullptr}); }

TEST_F(CommandBufferErrors, AfterTheEndOfRecording) {
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    expect(CL_INVALID_OPERATION, {buffer});
    EXPECT_EQ(functions().Finalize(buffer), CL_INVALID_OPERATION);
}

TEST_F(CommandBufferErrors, WithAQueueThatIsNotTheBuffers) {
    expect(CL_INVALID_COMMAND_QUEUE, {buffer, own.second_queue()});
    expect(CL_INVALID_CONTEXT, {buffer, other.queue()});
}

TEST_F(CommandBufferErrors, WithUnknownProperties) {
    const CommandProperty unknown[] = {0x1234, 1, 0};
    expect(CL_INVALID_VALUE, {buffer, nullptr, unknown});
}

TEST_F(CommandBufferErrors, WithSyncPointsThatAreNone) {
    const cl_sync_point_khr unknown = 77;
    expect(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR, {buffer, nullptr, nullptr, 1, nullptr});
    expect(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR, {buffer, nullptr, nullptr, 0, &unknown});
    expect(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR, {buffer, nullptr, nullptr, 1, &unknown});
}

TEST_F(CommandBufferErrors, WithObjectsOfAnotherContext) {
    for (const Recorder& recorder : own.recorders_here())
        if (recorder.has_memory) {
            EXPECT_EQ(recorder.record({buffer}, other.operands()), CL_INVALID_CONTEXT) << recorder.name;
        }
}

TEST_F(CommandBufferErrors, OfQueriesUpdatesAndLaunches) {
    cl_uint number = 0;
    EXPECT_EQ(functions().Info(nullptr, CL_COMMAND_BUFFER_NUM_QUEUES_KHR, sizeof number, &number, nullptr),
              CL_INVALID_COMMAND_BUFFER_KHR);
    EXPECT_EQ(functions().Info(buffer, 0x1234, sizeof number, &number, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(functions().Info(buffer, CL_COMMAND_BUFFER_NUM_QUEUES_KHR, 1, &number, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(functions().Update(nullptr, 0, nullptr, nullptr), CL_INVALID_COMMAND_BUFFER_KHR);
    EXPECT_EQ(functions().CommandInfo(nullptr, CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR, sizeof number, &number, nullptr),
              CL_INVALID_MUTABLE_COMMAND_KHR);
    cl_mutable_command_khr command = nullptr;
    ASSERT_EQ(functions().Kernel(buffer, nullptr, nullptr, own.operands().kernel, 1, nullptr, row, nullptr, 0, nullptr,
                                 nullptr, &command),
              CL_SUCCESS);
    EXPECT_EQ(functions().CommandInfo(command, 0x1234, sizeof number, &number, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(functions().CommandInfo(command, CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR, 1, &number, nullptr),
              CL_INVALID_VALUE);
    ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
    cl_command_queue foreign = other.queue();
    EXPECT_EQ(functions().Enqueue(1, &foreign, buffer, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
}

// clGetKernelSuggestedLocalWorkSize has the errors of a launch.
TEST_F(CommandBufferErrors, OfSuggestedSizes) {
    using Suggest = cl_int(CL_API_CALL*)(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, size_t*);
    size_t size[1] = {};
    for (const char* name : {"clGetKernelSuggestedLocalWorkSize", "clGetKernelSuggestedLocalWorkSizeKHR"}) {
        const auto suggest = extension_function<Suggest>(name);
        EXPECT_EQ(suggest(own.queue(), own.operands().kernel, 1, nullptr, row, size), CL_SUCCESS);
        EXPECT_EQ(suggest(other.queue(), own.operands().kernel, 1, nullptr, row, size), CL_INVALID_CONTEXT) << name;
    }
}

}  // namespace
}  // namespace polder::test
