// The wait list of every command: lists and counts that disagree, invalid events, events of another context, and
// events that fail.
#include "support/fixture.h"
#include "support/native_kernels.h"

#include <string_view>

namespace polder::test {
namespace {

struct List {
    cl_uint count;
    const cl_event* events;
};

struct Objects {
    cl_command_queue queue;
    cl_mem buffer;
    cl_mem image;
    cl_kernel kernel;
    uint8_t* svm;
};

constexpr size_t one = 1;
constexpr size_t origin[3] = {};
constexpr size_t beside[3] = {8, 0, 0};
constexpr size_t region[3] = {4, 1, 1};
constexpr size_t pixel_beside[3] = {1, 0, 0};
constexpr size_t pixel[3] = {1, 1, 1};
char bytes[64];

using Command = cl_int (*)(const Objects& o, const List& l);
struct NamedCommand {
    const char* name;
    Command enqueue;
};

cl_int map(const Objects& o, const List& l, cl_bool blocking) {
    cl_int error = CL_SUCCESS;
    void* const mapped =
        clEnqueueMapBuffer(o.queue, o.buffer, blocking, CL_MAP_READ, 0, 4, l.count, l.events, nullptr, &error);
    EXPECT_EQ(mapped != nullptr, error == CL_SUCCESS);
    return error;
}

cl_int map_image(const Objects& o, const List& l, cl_bool blocking) {
    cl_int error = CL_SUCCESS;
    size_t pitch = 0;
    void* const mapped = clEnqueueMapImage(o.queue, o.image, blocking, CL_MAP_READ, origin, pixel, &pitch, nullptr,
                                           l.count, l.events, nullptr, &error);
    EXPECT_EQ(mapped != nullptr, error == CL_SUCCESS);
    return error;
}

// A column for the name would be lost in a column for the call.
// clang-format off
const NamedCommand every_command[] = {
    {"read", [](const Objects& o, const List& l) { return clEnqueueReadBuffer(o.queue, o.buffer, CL_FALSE, 0, 4, bytes, l.count, l.events, nullptr); }},
    {"write", [](const Objects& o, const List& l) { return clEnqueueWriteBuffer(o.queue, o.buffer, CL_FALSE, 0, 4, bytes, l.count, l.events, nullptr); }},
    {"read rect", [](const Objects& o, const List& l) { return clEnqueueReadBufferRect(o.queue, o.buffer, CL_FALSE, origin, origin, region, 0, 0, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"write rect", [](const Objects& o, const List& l) { return clEnqueueWriteBufferRect(o.queue, o.buffer, CL_FALSE, origin, origin, region, 0, 0, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"copy", [](const Objects& o, const List& l) { return clEnqueueCopyBuffer(o.queue, o.buffer, o.buffer, 0, 8, 4, l.count, l.events, nullptr); }},
    {"copy rect", [](const Objects& o, const List& l) { return clEnqueueCopyBufferRect(o.queue, o.buffer, o.buffer, origin, beside, region, 16, 16, 16, 16, l.count, l.events, nullptr); }},
    {"fill", [](const Objects& o, const List& l) { return clEnqueueFillBuffer(o.queue, o.buffer, bytes, 4, 0, 4, l.count, l.events, nullptr); }},
    {"map", [](const Objects& o, const List& l) { return map(o, l, CL_FALSE); }},
    {"image read", [](const Objects& o, const List& l) { return clEnqueueReadImage(o.queue, o.image, CL_FALSE, origin, pixel, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"image write", [](const Objects& o, const List& l) { return clEnqueueWriteImage(o.queue, o.image, CL_FALSE, origin, pixel, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"image copy", [](const Objects& o, const List& l) { return clEnqueueCopyImage(o.queue, o.image, o.image, origin, pixel_beside, pixel, l.count, l.events, nullptr); }},
    {"image fill", [](const Objects& o, const List& l) { return clEnqueueFillImage(o.queue, o.image, bytes, origin, pixel, l.count, l.events, nullptr); }},
    {"image to buffer", [](const Objects& o, const List& l) { return clEnqueueCopyImageToBuffer(o.queue, o.image, o.buffer, origin, pixel, 0, l.count, l.events, nullptr); }},
    {"image from buffer", [](const Objects& o, const List& l) { return clEnqueueCopyBufferToImage(o.queue, o.buffer, o.image, 0, origin, pixel, l.count, l.events, nullptr); }},
    {"image map", [](const Objects& o, const List& l) { return map_image(o, l, CL_FALSE); }},
    {"migrate", [](const Objects& o, const List& l) { return clEnqueueMigrateMemObjects(o.queue, 1, &o.buffer, 0, l.count, l.events, nullptr); }},
    {"kernel", [](const Objects& o, const List& l) { return clEnqueueNDRangeKernel(o.queue, o.kernel, 1, nullptr, &one, nullptr, l.count, l.events, nullptr); }},
    {"task", [](const Objects& o, const List& l) { return clEnqueueTask(o.queue, o.kernel, l.count, l.events, nullptr); }},
    {"native kernel", [](const Objects& o, const List& l) { return clEnqueueNativeKernel(o.queue, [](void*) {}, nullptr, 0, 0, nullptr, nullptr, l.count, l.events, nullptr); }},
    {"marker", [](const Objects& o, const List& l) { return clEnqueueMarkerWithWaitList(o.queue, l.count, l.events, nullptr); }},
    {"barrier", [](const Objects& o, const List& l) { return clEnqueueBarrierWithWaitList(o.queue, l.count, l.events, nullptr); }},
    {"SVM free", [](const Objects& o, const List& l) { return clEnqueueSVMFree(o.queue, 0, nullptr, nullptr, nullptr, l.count, l.events, nullptr); }},
    {"SVM copy", [](const Objects& o, const List& l) { return clEnqueueSVMMemcpy(o.queue, CL_FALSE, o.svm, o.svm + 8, 4, l.count, l.events, nullptr); }},
    {"SVM fill", [](const Objects& o, const List& l) { return clEnqueueSVMMemFill(o.queue, o.svm, bytes, 4, 4, l.count, l.events, nullptr); }},
    {"SVM map", [](const Objects& o, const List& l) { return clEnqueueSVMMap(o.queue, CL_FALSE, CL_MAP_READ, o.svm, 4, l.count, l.events, nullptr); }},
    {"SVM unmap", [](const Objects& o, const List& l) { return clEnqueueSVMUnmap(o.queue, o.svm, l.count, l.events, nullptr); }},
    {"SVM migrate", [](const Objects& o, const List& l) { const void* list[] = {o.svm}; return clEnqueueSVMMigrateMem(o.queue, 1, list, nullptr, 0, l.count, l.events, nullptr); }},
};

const NamedCommand every_blocking_command[] = {
    {"read", [](const Objects& o, const List& l) { return clEnqueueReadBuffer(o.queue, o.buffer, CL_TRUE, 0, 4, bytes, l.count, l.events, nullptr); }},
    {"write", [](const Objects& o, const List& l) { return clEnqueueWriteBuffer(o.queue, o.buffer, CL_TRUE, 0, 4, bytes, l.count, l.events, nullptr); }},
    {"read rect", [](const Objects& o, const List& l) { return clEnqueueReadBufferRect(o.queue, o.buffer, CL_TRUE, origin, origin, region, 0, 0, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"write rect", [](const Objects& o, const List& l) { return clEnqueueWriteBufferRect(o.queue, o.buffer, CL_TRUE, origin, origin, region, 0, 0, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"map", [](const Objects& o, const List& l) { return map(o, l, CL_TRUE); }},
    {"image read", [](const Objects& o, const List& l) { return clEnqueueReadImage(o.queue, o.image, CL_TRUE, origin, pixel, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"image write", [](const Objects& o, const List& l) { return clEnqueueWriteImage(o.queue, o.image, CL_TRUE, origin, pixel, 0, 0, bytes, l.count, l.events, nullptr); }},
    {"image map", [](const Objects& o, const List& l) { return map_image(o, l, CL_TRUE); }},
    {"SVM copy", [](const Objects& o, const List& l) { return clEnqueueSVMMemcpy(o.queue, CL_TRUE, o.svm, o.svm + 8, 4, l.count, l.events, nullptr); }},
    {"SVM map", [](const Objects& o, const List& l) { return clEnqueueSVMMap(o.queue, CL_TRUE, CL_MAP_READ, o.svm, 4, l.count, l.events, nullptr); }},
};
// clang-format on

// On the first device, which the processor is where there is one; others may have neither images, SVM nor native kernels.
class WaitLists : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        buffer_ = make_buffer(64);
        program_ = build("kernel void k(global int* a) { a[0] = 1; }");
        kernel_ = make_kernel(program_, "k");
        ASSERT_EQ(clSetKernelArg(kernel_, 0, sizeof(cl_mem), buffer_.in()), CL_SUCCESS);
        cl_device_svm_capabilities svm = 0;
        ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr), CL_SUCCESS);
        if (svm != 0) {
            svm_ = static_cast<uint8_t*>(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0));
            ASSERT_NE(svm_, nullptr);
        }
        cl_bool has_images = CL_FALSE;
        ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, nullptr),
                  CL_SUCCESS);
        if (has_images != CL_FALSE) {
            const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
            cl_image_desc shape{};
            shape.image_type = CL_MEM_OBJECT_IMAGE2D;
            shape.image_width = shape.image_height = 4;
            cl_int error = CL_INVALID_VALUE;
            image_ = clCreateImage(context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &error);
            ASSERT_EQ(error, CL_SUCCESS);
        }
        objects_ = {queue, buffer_, image_, kernel_, svm_};
    }
    void TearDown() override {
        EXPECT_EQ(clFinish(queue), CL_SUCCESS);
        clSVMFree(context, svm_);
    }
    [[nodiscard]] bool is_offered(const NamedCommand& command) const {
        const std::string_view name = command.name;
        if (name.starts_with("image"))
            return objects_.image != nullptr;
        return name.starts_with("SVM") ? svm_ != nullptr
                                       : name != "native kernel" || executes_native_kernels(devices[0]);
    }

    OwnedMem buffer_, image_;
    OwnedProgram program_;
    OwnedKernel kernel_;
    uint8_t* svm_ = nullptr;
    Objects objects_{};
};

TEST_F(WaitLists, OfEveryCommandAreChecked) {
    const OwnedEvent good = make_user_event();
    ASSERT_EQ(clSetUserEventStatus(good, CL_COMPLETE), CL_SUCCESS);
    const cl_event null = nullptr;
    const cl_event nobodys = foreign_handle<cl_event>(context);
    const cl_event one_bad[] = {good, nobodys};
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    const OwnedEvent strange = clCreateUserEvent(other, &error);
    ASSERT_EQ(clSetUserEventStatus(strange, CL_COMPLETE), CL_SUCCESS);
    for (const NamedCommand& command : every_command) {
        if (!is_offered(command))
            continue;
        SCOPED_TRACE(command.name);
        EXPECT_EQ(command.enqueue(objects_, {1, nullptr}), CL_INVALID_EVENT_WAIT_LIST);
        EXPECT_EQ(command.enqueue(objects_, {0, good.in()}), CL_INVALID_EVENT_WAIT_LIST);
        EXPECT_EQ(command.enqueue(objects_, {1, &null}), CL_INVALID_EVENT_WAIT_LIST);
        EXPECT_EQ(command.enqueue(objects_, {1, &nobodys}), CL_INVALID_EVENT_WAIT_LIST);
        EXPECT_EQ(command.enqueue(objects_, {2, one_bad}), CL_INVALID_EVENT_WAIT_LIST);
        EXPECT_EQ(command.enqueue(objects_, {1, strange.in()}), CL_INVALID_CONTEXT);
        EXPECT_EQ(command.enqueue(objects_, {1, good.in()}), CL_SUCCESS);
    }
}

TEST_F(WaitLists, OfBlockingCommandsReportEventsThatFailed) {
    for (const NamedCommand& command : every_blocking_command) {
        if (!is_offered(command))
            continue;
        SCOPED_TRACE(command.name);
        const OwnedEvent failed = make_user_event();
        ASSERT_EQ(clSetUserEventStatus(failed, -5), CL_SUCCESS);
        EXPECT_EQ(command.enqueue(objects_, {1, failed.in()}), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        // The failure does not affect the next command.
        EXPECT_EQ(command.enqueue(objects_, {0, nullptr}), CL_SUCCESS);
    }
}

TEST_F(WaitLists, OfDeprecatedCommandsAreChecked) {
    const OwnedEvent good = make_user_event();
    ASSERT_EQ(clSetUserEventStatus(good, CL_COMPLETE), CL_SUCCESS);
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    const OwnedEvent strange = clCreateUserEvent(other, &error);
    EXPECT_EQ(clEnqueueMarker(queue, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueWaitForEvents(queue, 0, good.in()), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueWaitForEvents(queue, 1, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueWaitForEvents(queue, 1, strange.in()), CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueWaitForEvents(queue, 1, good.in()), CL_SUCCESS);
    EXPECT_EQ(clEnqueueBarrier(queue), CL_SUCCESS);
    OwnedEvent marker;
    EXPECT_EQ(clEnqueueMarker(queue, marker.out()), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, marker.in()), CL_SUCCESS);
}

TEST_F(WaitLists, OfAnUnmapAreCheckedAndLeaveTheMapAsItWas) {
    cl_int error = CL_INVALID_VALUE;
    void* const mapped = clEnqueueMapBuffer(queue, buffer_, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const cl_event nobodys = foreign_handle<cl_event>(context);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer_, mapped, 1, nullptr, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer_, mapped, 0, &nobodys, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer_, mapped, 1, &nobodys, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(mem_info<cl_uint>(buffer_, CL_MEM_MAP_COUNT), 1u);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer_, mapped, 0, nullptr, nullptr), CL_SUCCESS);
}

}  // namespace
}  // namespace polder::test
