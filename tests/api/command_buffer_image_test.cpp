// Image commands in command buffers: what a replay leaves is compared with what the same commands leave when they are enqueued one by one.
#include "support/command_buffer.h"
#include "support/images.h"

namespace polder::test {
namespace {

constexpr cl_uint color[4] = {1, 2, 3, 4};
constexpr size_t element = 4;
constexpr size_t offset = 20;  // of the image's part in the buffer

// Two images and a buffer between them.
struct Objects {
    OwnedMem from, to, between;
};

class CommandBufferImages : public ImageTest {
protected:
    Objects make_objects(const ImageType& type) {
        return {make_image(type), make_image(type), make_buffer(bytes_of(type.extent) + offset)};
    }
    static size_t bytes_of(const Triple& extent) { return extent[0] * extent[1] * extent[2] * element; }
    void set(const Objects& objects, const ImageType& type, const std::vector<uint8_t>& content) {
        write_image(objects.from, {0, 0, 0}, type.extent, content.data());
        const std::vector<uint8_t> other(content.rbegin(), content.rend());
        write_image(objects.to, {0, 0, 0}, type.extent, other.data());
        write(objects.between, std::vector<uint8_t>(bytes_of(type.extent) + offset, 0xab));
    }
    void expect_equal(const Objects& a, const Objects& b, const ImageType& type, cl_command_queue on) {
        EXPECT_EQ(read_image(a.from, {0, 0, 0}, type.extent, on), read_image(b.from, {0, 0, 0}, type.extent, on));
        EXPECT_EQ(read_image(a.to, {0, 0, 0}, type.extent, on), read_image(b.to, {0, 0, 0}, type.extent, on));
        const size_t size = bytes_of(type.extent) + offset;
        EXPECT_EQ(read<uint8_t>(a.between, size, on), read<uint8_t>(b.between, size, on));
    }
};

// Parts that are smaller than the image in each dimension that it has.
struct Parts {
    Triple origin, region, elsewhere, small;
};
Parts parts_of(const ImageType& type) {
    const auto smaller = [](size_t extent) { return extent > 1 ? extent - 1 : 1; };
    const size_t y = type.extent[1] > 1, z = type.extent[2] > 1;
    return {{2, y, z}, {7, smaller(type.extent[1]), smaller(type.extent[2])}, {5, 0, 0}, {3, 1, 1}};
}

void enqueue_each(const Objects& objects, const Parts& parts, cl_command_queue on) {
    const auto& [origin, region, elsewhere, small] = parts;
    EXPECT_EQ(clEnqueueFillImage(on, objects.from, color, elsewhere.data(), small.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clEnqueueFillImage(on, objects.to, color, origin.data(), region.data(), 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueCopyImageToBuffer(on, objects.from, objects.between, origin.data(), region.data(), offset, 0,
                                         nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clEnqueueCopyBufferToImage(on, objects.between, objects.to, offset, elsewhere.data(), small.data(), 0,
                                         nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clEnqueueCopyImage(on, objects.to, objects.from, elsewhere.data(), origin.data(), small.data(), 0,
                                 nullptr, nullptr),
              CL_SUCCESS);
}

void record_each(const Objects& objects, const Parts& parts, cl_command_buffer_khr buffer) {
    const auto& [origin, region, elsewhere, small] = parts;
    const CommandBufferFunctions& f = functions();
    cl_sync_point_khr point = 99;
    EXPECT_EQ(f.FillImage(buffer, nullptr, nullptr, objects.from, color, elsewhere.data(), small.data(), 0, nullptr,
                          &point, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(point, 0u);
    EXPECT_EQ(f.FillImage(buffer, nullptr, nullptr, objects.to, color, origin.data(), region.data(), 1, &point, nullptr,
                          nullptr),
              CL_SUCCESS);
    EXPECT_EQ(f.ImageToBuffer(buffer, nullptr, nullptr, objects.from, objects.between, origin.data(), region.data(),
                              offset, 0, nullptr, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(f.BufferToImage(buffer, nullptr, nullptr, objects.between, objects.to, offset, elsewhere.data(),
                              small.data(), 0, nullptr, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(f.CopyImage(buffer, nullptr, nullptr, objects.to, objects.from, elsewhere.data(), origin.data(),
                          small.data(), 0, nullptr, &point, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(point, 4u);
}

TEST_F(CommandBufferImages, Replayed_LeaveWhatTheSameCommandsLeave) {
    for (const cl_device_id device : devices)
        for (const ImageType& type : image_types) {
            SCOPED_TRACE(type.name);
            const OwnedQueue on = make_queue(device);
            const Parts parts = parts_of(type);
            const Objects expected = make_objects(type);
            Objects replayed = make_objects(type);
            const OwnedCommandBuffer buffer = make_command_buffer(on);
            record_each(replayed, parts, buffer);
            ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
            for (int round = 0; round < 3; ++round) {
                const std::vector<uint8_t> content = random_bytes(bytes_of(type.extent));
                set(expected, type, content);
                set(replayed, type, content);
                enqueue_each(expected, parts, on);
                ASSERT_EQ(enqueue_command_buffer(buffer), CL_SUCCESS);
                expect_equal(replayed, expected, type, on);
            }
        }
}

// A fill of all rows needs no bytes from elsewhere. Released images stay alive in the command buffer.
TEST_F(CommandBufferImages, OfAWholeImage_ReplaceEveryElement) {
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        const ImageType& type = image_types[2];
        OwnedMem image = make_image(type);
        const OwnedMem out = make_buffer(bytes_of(type.extent));
        const Triple origin{0, 0, 0};
        const OwnedCommandBuffer buffer = make_command_buffer(on);
        EXPECT_EQ(functions().FillImage(buffer, nullptr, nullptr, image, color, origin.data(), type.extent.data(), 0,
                                        nullptr, nullptr, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(functions().ImageToBuffer(buffer, nullptr, nullptr, image, out, origin.data(), type.extent.data(), 0,
                                            0, nullptr, nullptr, nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(functions().Finalize(buffer), CL_SUCCESS);
        image.reset();
        ASSERT_EQ(enqueue_command_buffer(buffer), CL_SUCCESS);
        std::vector<uint8_t> expected(bytes_of(type.extent));
        for (size_t i = 0; i < expected.size(); ++i)
            expected[i] = static_cast<uint8_t>(i % element + 1);
        EXPECT_EQ(read<uint8_t>(out, expected.size(), on), expected);
    }
}

TEST_F(CommandBufferImages, ReportEveryBadArgument) {
    const CommandBufferFunctions& f = functions();
    const ImageType& type = image_types[2];
    const OwnedMem image = make_image(type), other = make_image(type), plain = make_buffer(1024);
    const OwnedMem floats = make_image(type, {CL_R, CL_FLOAT});
    const OwnedMem fixed = make_image({CL_RGBA, CL_UNSIGNED_INT8}, describe(type.type, type.extent),
                                      CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
    const OwnedCommandBuffer buffer = make_command_buffer(queue);
    const size_t zero[3] = {0, 0, 0}, region[3] = {4, 4, 1}, one[3] = {1, 0, 0}, outside[3] = {10, 0, 0},
                 empty[3] = {0, 1, 1};
    cl_mutable_command_khr handle = nullptr;

    const OwnedQueue another = make_queue(devices[0]);
    struct Common {
        cl_command_buffer_khr buffer;
        cl_command_queue queue = nullptr;
        cl_uint num_points = 0;
        cl_mutable_command_khr* handle = nullptr;
        cl_int error = CL_SUCCESS;
    };
    const Common commons[] = {{nullptr, nullptr, 0, nullptr, CL_INVALID_COMMAND_BUFFER_KHR},
                              {buffer, another, 0, nullptr, CL_INVALID_COMMAND_QUEUE},
                              {buffer, nullptr, 1, nullptr, CL_INVALID_SYNC_POINT_WAIT_LIST_KHR},
                              {buffer, nullptr, 0, &handle, CL_INVALID_VALUE}};
    for (const Common& c : commons) {
        EXPECT_EQ(f.CopyImage(c.buffer, c.queue, nullptr, image, other, zero, zero, region, c.num_points, nullptr,
                              nullptr, c.handle),
                  c.error);
        EXPECT_EQ(f.ImageToBuffer(c.buffer, c.queue, nullptr, image, plain, zero, region, 0, c.num_points, nullptr,
                                  nullptr, c.handle),
                  c.error);
        EXPECT_EQ(f.BufferToImage(c.buffer, c.queue, nullptr, plain, image, 0, zero, region, c.num_points, nullptr,
                                  nullptr, c.handle),
                  c.error);
        EXPECT_EQ(f.FillImage(c.buffer, c.queue, nullptr, image, color, zero, region, c.num_points, nullptr, nullptr,
                              c.handle),
                  c.error);
    }

    const auto copy = [&](cl_mem from, cl_mem to, const size_t* source, const size_t* target, const size_t* size) {
        return f.CopyImage(buffer, nullptr, nullptr, from, to, source, target, size, 0, nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(copy(nullptr, image, zero, zero, region), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(copy(image, plain, zero, zero, region), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(copy(image, floats, zero, zero, region), CL_IMAGE_FORMAT_MISMATCH);
    EXPECT_EQ(copy(image, other, nullptr, zero, region), CL_INVALID_VALUE);
    EXPECT_EQ(copy(image, other, outside, zero, region), CL_INVALID_VALUE);
    EXPECT_EQ(copy(image, other, zero, zero, empty), CL_INVALID_VALUE);
    EXPECT_EQ(copy(image, image, zero, one, region), CL_MEM_COPY_OVERLAP);

    const auto to_buffer = [&](cl_mem from, cl_mem to, const size_t* origin, size_t at) {
        return f.ImageToBuffer(buffer, nullptr, nullptr, from, to, origin, region, at, 0, nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(to_buffer(plain, image, zero, 0), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(to_buffer(image, plain, outside, 0), CL_INVALID_VALUE);
    EXPECT_EQ(to_buffer(image, plain, zero, 1024 - 63), CL_INVALID_VALUE);

    const auto to_image = [&](cl_mem from, cl_mem to, size_t at, const size_t* origin) {
        return f.BufferToImage(buffer, nullptr, nullptr, from, to, at, origin, region, 0, nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(to_image(image, plain, 0, zero), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(to_image(plain, image, 0, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(to_image(plain, image, 1024 - 63, zero), CL_INVALID_VALUE);

    const auto fill = [&](cl_mem to, const void* with, const size_t* origin) {
        return f.FillImage(buffer, nullptr, nullptr, to, with, origin, region, 0, nullptr, nullptr, nullptr);
    };
    EXPECT_EQ(fill(plain, color, zero), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(fill(image, nullptr, zero), CL_INVALID_VALUE);
    EXPECT_EQ(fill(image, color, outside), CL_INVALID_VALUE);
    EXPECT_EQ(fill(fixed, color, zero), CL_SUCCESS);  // the device may write what the host may not

    ASSERT_EQ(f.Finalize(buffer), CL_SUCCESS);
    EXPECT_EQ(fill(image, color, zero), CL_INVALID_OPERATION);
    EXPECT_EQ(copy(image, other, zero, zero, region), CL_INVALID_OPERATION);
    EXPECT_EQ(to_buffer(image, plain, zero, 0), CL_INVALID_OPERATION);
    EXPECT_EQ(to_image(plain, image, 0, zero), CL_INVALID_OPERATION);
}

}  // namespace
}  // namespace polder::test
