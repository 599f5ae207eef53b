// Commands on images, against a copy of the image's elements in host memory. OpenCL 3.0, sections 5.3.4 to 5.3.7.
#include "support/images.h"

#include <algorithm>
#include <functional>

namespace polder::test {
namespace {

constexpr size_t element = 4;
constexpr cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};

// The elements of an image, tightly, as the tests expect them.
class Model {
public:
    Model(const Triple& extent, std::vector<uint8_t> bytes) : extent_(extent), bytes_(std::move(bytes)) {}

    [[nodiscard]] const std::vector<uint8_t>& bytes() const { return bytes_; }

    template <class Use>
    void for_each_row(const Triple& origin, const Triple& region, Use&& use) {
        size_t row = 0;
        for (size_t z = origin[2]; z < origin[2] + region[2]; ++z)
            for (size_t y = origin[1]; y < origin[1] + region[1]; ++y)
                use(bytes_.data() + ((z * extent_[1] + y) * extent_[0] + origin[0]) * element, row++);
    }
    void put(const Triple& origin, const Triple& region, const std::vector<uint8_t>& from) {
        const size_t bytes = region[0] * element;
        for_each_row(origin, region,
                     [&](uint8_t* place, size_t row) { std::memcpy(place, from.data() + row * bytes, bytes); });
    }
    std::vector<uint8_t> get(const Triple& origin, const Triple& region) {
        const size_t bytes = region[0] * element;
        std::vector<uint8_t> part(bytes * region[1] * region[2]);
        for_each_row(origin, region,
                     [&](uint8_t* place, size_t row) { std::memcpy(part.data() + row * bytes, place, bytes); });
        return part;
    }

private:
    Triple extent_;
    std::vector<uint8_t> bytes_;
};

class ImageCommands : public ImageTest {
protected:
    struct Filled {
        OwnedMem image;
        Model model;
    };
    Filled make_filled(const ImageType& type) {
        Model model{type.extent, random_bytes(type.extent[0] * type.extent[1] * type.extent[2] * element)};
        Filled filled{make_image(type, format), std::move(model)};
        write_image(filled.image, {0, 0, 0}, type.extent, filled.model.bytes().data());
        return filled;
    }
    // A part of the image that is smaller than it in each dimension that it has.
    static Triple some_origin(const ImageType& type) {
        return {2, type.extent[1] > 1 ? 1u : 0u, type.extent[2] > 1 ? 1u : 0u};
    }
    static Triple some_region(const ImageType& type) {
        return {7, type.extent[1] > 1 ? type.extent[1] - 1 : 1, type.extent[2] > 1 ? type.extent[2] - 1 : 1};
    }
    cl_int read_error(cl_mem image, const size_t* origin, const size_t* region, size_t row = 0, size_t slice = 0) {
        static uint8_t bytes[1 << 16];
        return clEnqueueReadImage(queue, image, CL_TRUE, origin, region, row, slice, bytes, 0, nullptr, nullptr);
    }
};

TEST_F(ImageCommands, PartsAreWrittenAndRead) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        Filled filled = make_filled(type);
        const Triple origin = some_origin(type);
        const Triple region = some_region(type);
        EXPECT_EQ(read_image(filled.image, origin, region), filled.model.get(origin, region));
        const std::vector<uint8_t> part = random_bytes(region[0] * region[1] * region[2] * element);
        write_image(filled.image, origin, region, part.data());
        filled.model.put(origin, region, part);
        EXPECT_EQ(read_image(filled.image, {0, 0, 0}, type.extent), filled.model.bytes());
    }
}

TEST_F(ImageCommands, HostMemoryMayHavePitches) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        Filled filled = make_filled(type);
        const Triple origin = some_origin(type);
        const Triple region = some_region(type);
        const bool is_line_array = type.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        const bool has_slices = is_line_array || type.extent[2] > 1;
        const size_t row = region[0] * element + 5;
        const size_t slice = has_slices ? (is_line_array ? row + 9 : row * region[1] + 11) : 0;
        const size_t rows = is_line_array ? 1 : region[1];
        const size_t slices = is_line_array ? region[1] : region[2];
        std::vector<uint8_t> host(slice * slices + row * rows, 0xcd);
        ASSERT_EQ(clEnqueueReadImage(queue, filled.image, CL_TRUE, origin.data(), region.data(), row, slice,
                                     host.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        std::vector<uint8_t> expected(host.size(), 0xcd);
        filled.model.for_each_row(origin, region, [&](const uint8_t* place, size_t index) {
            const size_t at = index / rows * slice + index % rows * row;
            std::memcpy(expected.data() + at, place, region[0] * element);
        });
        EXPECT_EQ(host, expected);
        for (uint8_t& byte : host)
            byte = static_cast<uint8_t>(~byte);
        ASSERT_EQ(clEnqueueWriteImage(queue, filled.image, CL_TRUE, origin.data(), region.data(), row, slice,
                                      host.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        std::vector<uint8_t> part = filled.model.get(origin, region);
        for (uint8_t& byte : part)
            byte = static_cast<uint8_t>(~byte);
        filled.model.put(origin, region, part);
        EXPECT_EQ(read_image(filled.image, {0, 0, 0}, type.extent), filled.model.bytes());
    }
}

TEST_F(ImageCommands, CopiesGoBetweenImagesOfAnyTypes) {
    for (const ImageType& from_type : image_types)
        for (const ImageType& to_type : image_types) {
            SCOPED_TRACE(std::string(from_type.name) + " to " + to_type.name);
            Filled from = make_filled(from_type);
            Filled to = make_filled(to_type);
            Triple region{7, 1, 1};
            for (size_t i = 1; i < 3; ++i)
                region[i] = std::min(some_region(from_type)[i], some_region(to_type)[i]);
            const Triple source = some_origin(from_type);
            const Triple target = some_origin(to_type);
            ASSERT_EQ(clEnqueueCopyImage(queue, from.image, to.image, source.data(), target.data(), region.data(), 0,
                                         nullptr, nullptr),
                      CL_SUCCESS);
            to.model.put(target, region, from.model.get(source, region));
            EXPECT_EQ(read_image(to.image, {0, 0, 0}, to_type.extent), to.model.bytes());
        }
}

TEST_F(ImageCommands, CopiesGoToBuffersAndBack) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        Filled filled = make_filled(type);
        const Triple origin = some_origin(type);
        const Triple region = some_region(type);
        const size_t bytes = region[0] * region[1] * region[2] * element;
        const OwnedMem buffer = make_buffer(bytes + 100);
        ASSERT_EQ(clEnqueueCopyImageToBuffer(queue, filled.image, buffer, origin.data(), region.data(), 33, 0, nullptr,
                                             nullptr),
                  CL_SUCCESS);
        std::vector<uint8_t> part(bytes);
        ASSERT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 33, bytes, part.data(), 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(part, filled.model.get(origin, region));
        part = random_bytes(bytes);
        ASSERT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 100, bytes, part.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        ASSERT_EQ(clEnqueueCopyBufferToImage(queue, buffer, filled.image, 100, origin.data(), region.data(), 0, nullptr,
                                             nullptr),
                  CL_SUCCESS);
        filled.model.put(origin, region, part);
        EXPECT_EQ(read_image(filled.image, {0, 0, 0}, type.extent), filled.model.bytes());
        EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, filled.image, buffer, origin.data(), region.data(), 101, 0, nullptr,
                                             nullptr),
                  CL_INVALID_VALUE);
    }
}

TEST_F(ImageCommands, FillsConvertTheColor) {
    struct Case {
        cl_image_format format;
        std::vector<uint8_t> element;
    };
    const cl_float real[4] = {0.5f, 2.0f, -1.0f, 1.0f};
    const Case reals[] = {
        {{CL_RGBA, CL_UNORM_INT8}, {128, 255, 0, 255}},
        {{CL_BGRA, CL_UNORM_INT8}, {0, 255, 128, 255}},
        {{CL_ARGB, CL_UNORM_INT8}, {255, 128, 255, 0}},
        {{CL_RG, CL_SNORM_INT8}, {64, 127}},
        {{CL_RA, CL_UNORM_INT8}, {128, 255}},
        {{CL_A, CL_UNORM_INT16}, {255, 255}},
        {{CL_R, CL_HALF_FLOAT}, {0x00, 0x38}},
        {{CL_RGB, CL_UNORM_SHORT_565}, {0xe0, 0x87}},
        {{CL_R, CL_FLOAT}, {0, 0, 0, 0x3f}},
        {{CL_sRGBA, CL_UNORM_INT8}, {188, 255, 0, 255}},
    };
    const cl_int whole[4] = {300, -300, 7, -7};
    const Case integers[] = {
        {{CL_RGBA, CL_SIGNED_INT8}, {127, 0x80, 7, 0xf9}},
        {{CL_RGBA, CL_UNSIGNED_INT8}, {255, 255, 7, 255}},
        {{CL_RG, CL_SIGNED_INT16}, {0x2c, 0x01, 0xd4, 0xfe}},
        {{CL_R, CL_UNSIGNED_INT32}, {0x2c, 0x01, 0, 0}},
    };
    const auto check = [&](const Case& each, const void* color) {
        SCOPED_TRACE(std::to_string(each.format.image_channel_order) + " " +
                     std::to_string(each.format.image_channel_data_type));
        const OwnedMem image = make_image(each.format, describe(CL_MEM_OBJECT_IMAGE2D, {5, 3, 1}));
        const size_t origin[3] = {0, 0, 0};
        const size_t region[3] = {5, 3, 1};
        ASSERT_EQ(clEnqueueFillImage(queue, image, color, origin, region, 0, nullptr, nullptr), CL_SUCCESS);
        const std::vector<uint8_t> bytes = read_image(image, {0, 0, 0}, {5, 3, 1});
        for (size_t i = 0; i < bytes.size(); ++i)
            EXPECT_EQ(bytes[i], each.element[i % each.element.size()]) << i;
    };
    for (const Case& each : reals)
        check(each, real);
    for (const Case& each : integers)
        check(each, whole);
}

TEST_F(ImageCommands, FillsLeaveTheRestAlone) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        Filled filled = make_filled(type);
        const cl_uint color[4] = {1, 2, 3, 4};
        const Triple origin = some_origin(type);
        const Triple region = some_region(type);
        ASSERT_EQ(clEnqueueFillImage(queue, filled.image, color, origin.data(), region.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        filled.model.for_each_row(origin, region, [&](uint8_t* place, size_t) {
            for (size_t i = 0; i < region[0] * element; ++i)
                place[i] = static_cast<uint8_t>(i % 4 + 1);
        });
        EXPECT_EQ(read_image(filled.image, {0, 0, 0}, type.extent), filled.model.bytes());
    }
}

TEST_F(ImageCommands, MapsShowAndTakeElements) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        Filled filled = make_filled(type);
        const Triple origin = some_origin(type);
        const Triple region = some_region(type);
        size_t row = 0;
        size_t slice = 0;
        cl_int error = CL_INVALID_VALUE;
        auto* const mapped = static_cast<uint8_t*>(
            clEnqueueMapImage(queue, filled.image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin.data(), region.data(),
                              &row, &slice, 0, nullptr, nullptr, &error));
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(row, type.extent[0] * element);
        const bool is_line_array = type.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        const size_t rows = is_line_array ? 1 : region[1];
        filled.model.for_each_row(origin, region, [&](uint8_t* place, size_t index) {
            uint8_t* const at = mapped + index / rows * slice + index % rows * row;
            EXPECT_EQ(std::memcmp(at, place, region[0] * element), 0);
            at[0] = place[0] = static_cast<uint8_t>(index);
        });
        // The same bytes cannot be mapped for writing twice; others can, although their rows are the same.
        EXPECT_EQ(clEnqueueMapImage(queue, filled.image, CL_TRUE, CL_MAP_WRITE, origin.data(), region.data(), &row,
                                    &slice, 0, nullptr, nullptr, &error),
                  nullptr);
        EXPECT_EQ(error, CL_INVALID_OPERATION);
        Triple beside = origin;
        beside[0] += region[0];
        const Triple narrow{2, region[1], region[2]};
        void* const other = clEnqueueMapImage(queue, filled.image, CL_TRUE, CL_MAP_WRITE, beside.data(), narrow.data(),
                                              &row, &slice, 0, nullptr, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(mem_info<cl_uint>(filled.image, CL_MEM_MAP_COUNT), 2u);
        EXPECT_EQ(clEnqueueUnmapMemObject(queue, filled.image, other, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clEnqueueUnmapMemObject(queue, filled.image, mapped, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clEnqueueUnmapMemObject(queue, filled.image, mapped, 0, nullptr, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(read_image(filled.image, {0, 0, 0}, type.extent), filled.model.bytes());
    }
}

TEST_F(ImageCommands, MovesBetweenDevicesKeepTheContents) {
    std::vector<OwnedQueue> queues;
    for (const cl_device_id device : devices)
        queues.push_back(make_queue(device));
    for (const ImageType& type : image_types) {
        Filled filled = make_filled(type);
        const cl_mem list[] = {filled.image};
        for (const OwnedQueue& on : queues) {
            EXPECT_EQ(clEnqueueMigrateMemObjects(on, 1, list, 0, 0, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(clFinish(on), CL_SUCCESS);
            EXPECT_EQ(read_image(filled.image, {0, 0, 0}, type.extent, on), filled.model.bytes());
        }
    }
}

// --- arguments ---

TEST_F(ImageCommands, RegionsOutOfBoundsAreRefused) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        const OwnedMem image = make_image(type, format);
        const size_t zero[3] = {0, 0, 0};
        EXPECT_EQ(read_error(image, zero, type.extent.data()), CL_SUCCESS);
        EXPECT_EQ(read_error(image, nullptr, type.extent.data()), CL_INVALID_VALUE);
        EXPECT_EQ(read_error(image, zero, nullptr), CL_INVALID_VALUE);
        for (size_t i = 0; i < 3; ++i) {
            Triple region = type.extent;
            region[i] = 0;
            EXPECT_EQ(read_error(image, zero, region.data()), CL_INVALID_VALUE);
            region[i] = type.extent[i] + 1;
            EXPECT_EQ(read_error(image, zero, region.data()), CL_INVALID_VALUE);
            region[i] = SIZE_MAX;
            Triple origin{};
            origin[i] = 1;
            EXPECT_EQ(read_error(image, origin.data(), region.data()), CL_INVALID_VALUE);
            origin[i] = type.extent[i];
            region[i] = 1;
            EXPECT_EQ(read_error(image, origin.data(), region.data()), CL_INVALID_VALUE);
        }
        const size_t row = type.extent[0] * element;
        EXPECT_EQ(read_error(image, zero, type.extent.data(), row - 1), CL_INVALID_VALUE);
        EXPECT_EQ(read_error(image, zero, type.extent.data(), SIZE_MAX, type.extent[2] > 1 ? SIZE_MAX : 0),
                  type.extent[1] == 1 ? CL_SUCCESS : CL_INVALID_VALUE);
        if (image_info<size_t>(image, CL_IMAGE_SLICE_PITCH) == 0) {
            EXPECT_EQ(read_error(image, zero, type.extent.data(), 0, row * type.extent[1]), CL_INVALID_VALUE);
        } else
            EXPECT_EQ(read_error(image, zero, type.extent.data(), 0, row - 1), CL_INVALID_VALUE);
    }
}

// Places and regions that are null, empty or beyond the image, or beyond the buffer.
TEST_F(ImageCommands, EveryCommandRefusesTheSameRegions) {
    const ImageType& type = image_types[2];
    const OwnedMem image = make_image(type), other = make_image(type);
    const size_t row = type.extent[0] * 4, size = row * type.extent[1];
    const OwnedMem buffer = make_buffer(size);
    std::vector<char> bytes(size);
    const cl_uint color[4] = {};
    struct Command {
        const char* name;
        std::function<cl_int(const size_t* origin, const size_t* region)> enqueue;
    };
    const Command commands[] = {
        {"write",
         [&](const size_t* origin, const size_t* region) {
             return clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, 0, 0, bytes.data(), 0, nullptr, nullptr);
         }},
        {"fill",
         [&](const size_t* origin, const size_t* region) {
             return clEnqueueFillImage(queue, image, color, origin, region, 0, nullptr, nullptr);
         }},
        {"copy from",
         [&](const size_t* origin, const size_t* region) {
             const size_t to[3] = {};
             return clEnqueueCopyImage(queue, image, other, origin, to, region, 0, nullptr, nullptr);
         }},
        {"copy to",
         [&](const size_t* origin, const size_t* region) {
             const size_t from[3] = {};
             return clEnqueueCopyImage(queue, other, image, from, origin, region, 0, nullptr, nullptr);
         }},
        {"image to buffer",
         [&](const size_t* origin, const size_t* region) {
             return clEnqueueCopyImageToBuffer(queue, image, buffer, origin, region, 0, 0, nullptr, nullptr);
         }},
        {"buffer to image",
         [&](const size_t* origin, const size_t* region) {
             return clEnqueueCopyBufferToImage(queue, buffer, image, 0, origin, region, 0, nullptr, nullptr);
         }},
    };
    const size_t zero[3] = {}, one[3] = {1, 1, 1}, nothing[3] = {1, 0, 1}, layer[3] = {0, 0, 1};
    const size_t right[3] = {type.extent[0] - 1, 0, 0}, wide[3] = {2, 1, 1}, endless[3] = {SIZE_MAX, 1, 1};
    for (const Command& command : commands) {
        SCOPED_TRACE(command.name);
        EXPECT_EQ(command.enqueue(nullptr, one), CL_INVALID_VALUE);
        EXPECT_EQ(command.enqueue(zero, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(command.enqueue(zero, nothing), CL_INVALID_VALUE);
        EXPECT_EQ(command.enqueue(layer, one), CL_INVALID_VALUE);
        EXPECT_EQ(command.enqueue(right, wide), CL_INVALID_VALUE);
        EXPECT_EQ(command.enqueue(right, endless), CL_INVALID_VALUE);
        EXPECT_EQ(command.enqueue(right, one), CL_SUCCESS);
    }
    EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, image, buffer, zero, one, size - 3, 0, nullptr, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueCopyBufferToImage(queue, buffer, image, size - 3, zero, one, 0, nullptr, nullptr),
              CL_INVALID_VALUE);
}

TEST_F(ImageCommands, InvalidObjectsAndFlagsAreRefused) {
    const OwnedMem image = make_image(image_types[2], format);
    const OwnedMem buffer = make_buffer(4096);
    const OwnedMem other_format = make_image(image_types[2], {CL_RGBA, CL_SIGNED_INT8});
    const size_t zero[3] = {0, 0, 0};
    const size_t one[3] = {1, 1, 1};
    size_t pitch = 0;
    char bytes[64];
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(read_error(buffer, zero, one), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueWriteImage(queue, buffer, CL_TRUE, zero, one, 0, 0, bytes, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueFillImage(queue, buffer, bytes, zero, one, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueFillImage(queue, image, nullptr, zero, one, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueCopyImage(queue, buffer, image, zero, zero, one, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyImage(queue, image, buffer, zero, zero, one, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyImage(queue, image, other_format, zero, zero, one, 0, nullptr, nullptr),
              CL_IMAGE_FORMAT_MISMATCH);
    const size_t near[3] = {1, 1, 0};
    const size_t square[3] = {3, 3, 1};
    EXPECT_EQ(clEnqueueCopyImage(queue, image, image, zero, near, square, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    const size_t beside[3] = {3, 0, 0};
    EXPECT_EQ(clEnqueueCopyImage(queue, image, image, zero, beside, square, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, buffer, buffer, zero, one, 0, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, image, image, zero, one, 0, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, image, buffer, zero, one, SIZE_MAX, 0, nullptr, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueCopyBufferToImage(queue, buffer, buffer, 0, zero, one, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueCopyBufferToImage(queue, image, image, 0, zero, one, 0, nullptr, nullptr),
              CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueReadImage(queue, image, CL_TRUE, zero, one, 0, 0, nullptr, 0, nullptr, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueReadImage(queue, image, CL_TRUE, zero, one, 0, 0, bytes, 1, nullptr, nullptr),
              CL_INVALID_EVENT_WAIT_LIST);
    EXPECT_EQ(
        clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, zero, one, nullptr, nullptr, 0, nullptr, nullptr, &error),
        nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION, zero, one, &pitch,
                                nullptr, 0, nullptr, nullptr, &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const OwnedMem layered = make_image(image_types[3], format);
    EXPECT_EQ(clEnqueueMapImage(queue, layered, CL_TRUE, CL_MAP_READ, zero, one, &pitch, nullptr, 0, nullptr, nullptr,
                                &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    // Buffer commands take no images.
    EXPECT_EQ(clEnqueueReadBuffer(queue, image, CL_TRUE, 0, 4, bytes, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueFillBuffer(queue, image, bytes, 4, 0, 4, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    const cl_buffer_region part{0, 4};
    EXPECT_EQ(clCreateSubBuffer(image, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_MEM_OBJECT);
}

TEST_F(ImageCommands, HostAccessIsWhatTheFlagsAllow) {
    const cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {8, 4, 1});
    const size_t zero[3] = {0, 0, 0};
    const size_t one[3] = {1, 1, 1};
    size_t pitch = 0;
    char bytes[64] = {};
    struct Case {
        cl_mem_flags flags;
        cl_int read;
        cl_int write;
    };
    for (const Case& each : {Case{CL_MEM_HOST_NO_ACCESS, CL_INVALID_OPERATION, CL_INVALID_OPERATION},
                             Case{CL_MEM_HOST_READ_ONLY, CL_SUCCESS, CL_INVALID_OPERATION},
                             Case{CL_MEM_HOST_WRITE_ONLY, CL_INVALID_OPERATION, CL_SUCCESS}}) {
        const OwnedMem image = make_image(format, description, each.flags);
        EXPECT_EQ(read_error(image, zero, one), each.read);
        EXPECT_EQ(clEnqueueWriteImage(queue, image, CL_TRUE, zero, one, 0, 0, bytes, 0, nullptr, nullptr), each.write);
        for (const auto& [flag, expected] : {std::pair{CL_MAP_READ, each.read}, std::pair{CL_MAP_WRITE, each.write},
                                             std::pair{CL_MAP_WRITE_INVALIDATE_REGION, each.write}}) {
            cl_int error = CL_SUCCESS;
            void* const mapped = clEnqueueMapImage(queue, image, CL_TRUE, static_cast<cl_map_flags>(flag), zero, one,
                                                   &pitch, nullptr, 0, nullptr, nullptr, &error);
            EXPECT_EQ(error, expected);
            if (mapped) {
                EXPECT_EQ(clEnqueueUnmapMemObject(queue, image, mapped, 0, nullptr, nullptr), CL_SUCCESS);
            }
        }
    }
}

} // namespace
} // namespace polder::test
