// Images: creation, queries, formats. OpenCL 3.0, sections 5.3.1 to 5.3.3 and 5.3.8.
#include "support/images.h"

#include <CL/cl_ext.h>
#include <algorithm>

namespace polder::test {
namespace {

using Images = ImageTest;
constexpr cl_image_format rgba8{CL_RGBA, CL_UNORM_INT8};

TEST_F(Images, ReportWhatTheyWereCreatedWith) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        const cl_image_desc description = describe(type.type, type.extent);
        const OwnedMem image = make_image({CL_RG, CL_HALF_FLOAT}, description, CL_MEM_READ_ONLY);
        const auto format = image_info<cl_image_format>(image, CL_IMAGE_FORMAT);
        EXPECT_EQ(format.image_channel_order, cl_channel_order{CL_RG});
        EXPECT_EQ(format.image_channel_data_type, cl_channel_type{CL_HALF_FLOAT});
        EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_ELEMENT_SIZE), 4u);
        EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_WIDTH), description.image_width);
        EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_HEIGHT), description.image_height);
        EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_DEPTH), description.image_depth);
        EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_ARRAY_SIZE), description.image_array_size);
        const size_t row = type.extent[0] * 4;
        EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_ROW_PITCH), row);
        const bool is_layered = description.image_depth || description.image_array_size;
        EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_SLICE_PITCH),
                  is_layered ? row * std::max<size_t>(description.image_height, 1) : 0);
        EXPECT_EQ(image_info<cl_mem>(image, CL_IMAGE_BUFFER), nullptr);
        EXPECT_EQ(image_info<cl_uint>(image, CL_IMAGE_NUM_MIP_LEVELS), 0u);
        EXPECT_EQ(image_info<cl_uint>(image, CL_IMAGE_NUM_SAMPLES), 0u);
        EXPECT_EQ(mem_info<cl_mem_object_type>(image, CL_MEM_TYPE), type.type);
        EXPECT_EQ(mem_info<size_t>(image, CL_MEM_SIZE), row * type.extent[1] * type.extent[2]);
        EXPECT_EQ(mem_info<cl_mem_flags>(image, CL_MEM_FLAGS), cl_mem_flags{CL_MEM_READ_ONLY});
        EXPECT_EQ(mem_info<cl_context>(image, CL_MEM_CONTEXT), static_cast<cl_context>(context));
        size_t value = 0;
        EXPECT_EQ(clGetImageInfo(image, CL_MEM_SIZE, sizeof value, &value, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_WIDTH, 1, &value, nullptr), CL_INVALID_VALUE);
    }
    const OwnedMem buffer = make_buffer(64);
    size_t value = 0;
    EXPECT_EQ(clGetImageInfo(buffer, CL_IMAGE_WIDTH, sizeof value, &value, nullptr), CL_INVALID_MEM_OBJECT);
}

TEST_F(Images, OldCallsCreateThemToo) {
    cl_int error = CL_INVALID_VALUE;
    const OwnedMem flat = clCreateImage2D(context, CL_MEM_READ_WRITE, &rgba8, 8, 4, 0, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(image_info<size_t>(flat, CL_IMAGE_HEIGHT), 4u);
    const OwnedMem deep = clCreateImage3D(context, CL_MEM_READ_WRITE, &rgba8, 8, 4, 2, 0, 0, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(image_info<size_t>(deep, CL_IMAGE_DEPTH), 2u);
    EXPECT_EQ(clCreateImage3D(context, CL_MEM_READ_WRITE, &rgba8, 8, 4, 1, 0, 0, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_IMAGE_SIZE);
    EXPECT_EQ(clCreateImage2D(context, CL_MEM_READ_WRITE, &rgba8, 8, 0, 0, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_IMAGE_SIZE);
    EXPECT_EQ(clCreateImage2D(context, CL_MEM_READ_WRITE, &rgba8, 8, 4, 64, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_IMAGE_SIZE);
    const cl_mem_properties none[] = {0};
    const cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {8, 4, 1});
    const OwnedMem with =
        clCreateImageWithProperties(context, none, CL_MEM_READ_WRITE, &rgba8, &description, nullptr, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    const cl_mem_properties wrong[] = {1, 1, 0};
    EXPECT_EQ(clCreateImageWithProperties(context, wrong, 0, &rgba8, &description, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROPERTY);
}

TEST_F(Images, InvalidFormatsAreRefused) {
    const cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {8, 4, 1});
    EXPECT_EQ(creation_error(nullptr, &description), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    for (const cl_image_format format :
         {cl_image_format{0, CL_UNORM_INT8}, cl_image_format{CL_RGBA, 0}, cl_image_format{CL_RGB, CL_UNORM_INT8},
          cl_image_format{CL_RGBA, CL_UNORM_SHORT_565}, cl_image_format{CL_RGB, CL_UNORM_INT_101010_2}})
        EXPECT_EQ(creation_error(&format, &description), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    for (const cl_image_format format :
         {cl_image_format{CL_INTENSITY, CL_UNSIGNED_INT8}, cl_image_format{CL_ARGB, CL_FLOAT}})
        EXPECT_EQ(creation_error(&format, &description), CL_IMAGE_FORMAT_NOT_SUPPORTED);
    const cl_image_format depth{CL_DEPTH, CL_FLOAT};
    EXPECT_EQ(creation_error(&depth, &description), CL_SUCCESS);
    const cl_image_desc deep = describe(CL_MEM_OBJECT_IMAGE3D, {8, 4, 2});
    EXPECT_EQ(creation_error(&depth, &deep), CL_IMAGE_FORMAT_NOT_SUPPORTED);
}

// The other functions that create images, of the descriptor for 8 x 4 (x 2) elements.
struct Creation {
    const char* name;
    cl_mem (*create)(cl_context, cl_mem_flags, const cl_image_format*, void* host, cl_int* error);
};
const Creation creations[] = {
    {"clCreateImage2D", [](cl_context context, cl_mem_flags flags, const cl_image_format* format, void* host,
                           cl_int* error) { return clCreateImage2D(context, flags, format, 8, 4, 0, host, error); }},
    {"clCreateImage3D",
     [](cl_context context, cl_mem_flags flags, const cl_image_format* format, void* host, cl_int* error) {
         return clCreateImage3D(context, flags, format, 8, 4, 2, 0, 0, host, error);
     }},
    {"clCreateImageWithProperties",
     [](cl_context context, cl_mem_flags flags, const cl_image_format* format, void* host, cl_int* error) {
         const cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {8, 4, 1});
         return clCreateImageWithProperties(context, nullptr, flags, format, &description, host, error);
     }},
};

TEST_F(Images, EveryFunctionThatCreatesThemRefusesTheSame) {
    constexpr cl_image_format unknown{0, CL_UNORM_INT8}, unsupported{CL_ARGB, CL_FLOAT};
    char host[8 * 4 * 2 * 4];
    struct Case {
        cl_mem_flags flags;
        const cl_image_format* format;
        void* host;
        cl_int error;
    };
    const Case cases[] = {
        {CL_MEM_READ_WRITE, nullptr, nullptr, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR},
        {CL_MEM_READ_WRITE, &unknown, nullptr, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR},
        {CL_MEM_READ_WRITE, &unsupported, nullptr, CL_IMAGE_FORMAT_NOT_SUPPORTED},
        {CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, &rgba8, nullptr, CL_INVALID_VALUE},
        {cl_mem_flags{1} << 60, &rgba8, nullptr, CL_INVALID_VALUE},
        {CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, &rgba8, host, CL_INVALID_VALUE},
        {CL_MEM_USE_HOST_PTR, &rgba8, nullptr, CL_INVALID_HOST_PTR},
        {CL_MEM_COPY_HOST_PTR, &rgba8, nullptr, CL_INVALID_HOST_PTR},
        {CL_MEM_READ_WRITE, &rgba8, host, CL_INVALID_HOST_PTR},
    };
    for (const Creation& creation : creations) {
        SCOPED_TRACE(creation.name);
        for (const Case& each : cases) {
            cl_int error = CL_SUCCESS;
            EXPECT_EQ(creation.create(context, each.flags, each.format, each.host, &error), nullptr);
            EXPECT_EQ(error, each.error) << "case " << &each - cases;
        }
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(creation.create(nullptr, CL_MEM_READ_WRITE, &rgba8, nullptr, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_CONTEXT);
        const OwnedMem made = creation.create(context, CL_MEM_COPY_HOST_PTR, &rgba8, host, &error);
        EXPECT_EQ(error, CL_SUCCESS);
    }
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateImageWithProperties(context, nullptr, CL_MEM_READ_WRITE, &rgba8, nullptr, nullptr, &error),
              nullptr);
    EXPECT_EQ(error, CL_INVALID_IMAGE_DESCRIPTOR);
}

TEST_F(Images, InvalidDescriptorsAreRefused) {
    EXPECT_EQ(creation_error(&rgba8, nullptr), CL_INVALID_IMAGE_DESCRIPTOR);
    char host[4096];
    struct Case {
        void (*change)(cl_image_desc& description);
        cl_int error;
        void* host;
        cl_mem_flags flags;
    };
    const Case cases[] = {
        {[](auto& d) { d.image_type = 0; }, CL_INVALID_IMAGE_DESCRIPTOR, nullptr, 0},
        {[](auto& d) { d.image_type = CL_MEM_OBJECT_BUFFER; }, CL_INVALID_IMAGE_DESCRIPTOR, nullptr, 0},
        {[](auto& d) { d.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER; }, CL_INVALID_IMAGE_DESCRIPTOR, nullptr, 0},
        {[](auto& d) { d.num_mip_levels = 1; }, CL_INVALID_IMAGE_DESCRIPTOR, nullptr, 0},
        {[](auto& d) { d.num_samples = 1; }, CL_INVALID_IMAGE_DESCRIPTOR, nullptr, 0},
        {[](auto& d) { d.image_width = 0; }, CL_INVALID_IMAGE_SIZE, nullptr, 0},
        {[](auto& d) { d.image_height = 0; }, CL_INVALID_IMAGE_SIZE, nullptr, 0},
        {[](auto& d) { d.image_width = SIZE_MAX; }, CL_INVALID_IMAGE_SIZE, nullptr, 0},
        {[](auto& d) { d.image_height = SIZE_MAX / 2; }, CL_INVALID_IMAGE_SIZE, nullptr, 0},
        {[](auto& d) { d.image_type = CL_MEM_OBJECT_IMAGE3D; }, CL_INVALID_IMAGE_SIZE, nullptr, 0},
        {[](auto& d) { d.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY; }, CL_INVALID_IMAGE_SIZE, nullptr, 0},
        {[](auto& d) { d.image_type = CL_MEM_OBJECT_IMAGE1D_ARRAY; }, CL_INVALID_IMAGE_SIZE, nullptr, 0},
        // Pitches without a host pointer; too small, not of whole elements, too large for any size.
        {[](auto& d) { d.image_row_pitch = 64; }, CL_INVALID_IMAGE_DESCRIPTOR, nullptr, 0},
        {[](auto& d) { d.image_row_pitch = 28; }, CL_INVALID_IMAGE_DESCRIPTOR, host, CL_MEM_COPY_HOST_PTR},
        {[](auto& d) { d.image_row_pitch = 34; }, CL_INVALID_IMAGE_DESCRIPTOR, host, CL_MEM_COPY_HOST_PTR},
        {[](auto& d) { d.image_row_pitch = SIZE_MAX / 4 * 4; }, CL_INVALID_IMAGE_DESCRIPTOR, host,
         CL_MEM_COPY_HOST_PTR},
        {[](auto& d) {
             d.image_type = CL_MEM_OBJECT_IMAGE3D;
             d.image_depth = 2;
             d.image_slice_pitch = 64;
         },
         CL_INVALID_IMAGE_DESCRIPTOR, host, CL_MEM_COPY_HOST_PTR},
        {[](auto& d) {
             d.image_type = CL_MEM_OBJECT_IMAGE3D;
             d.image_depth = 2;
             d.image_slice_pitch = 130;
         },
         CL_INVALID_IMAGE_DESCRIPTOR, host, CL_MEM_COPY_HOST_PTR},
        {[](auto& d) {
             d.image_type = CL_MEM_OBJECT_IMAGE3D;
             d.image_depth = 2;
             d.image_slice_pitch = SIZE_MAX / 32 * 32;
         },
         CL_INVALID_IMAGE_DESCRIPTOR, host, CL_MEM_COPY_HOST_PTR},
        {[](auto&) {}, CL_INVALID_HOST_PTR, nullptr, CL_MEM_COPY_HOST_PTR},
        {[](auto&) {}, CL_INVALID_HOST_PTR, nullptr, CL_MEM_USE_HOST_PTR},
        {[](auto&) {}, CL_INVALID_HOST_PTR, host, 0},
        {[](auto&) {}, CL_INVALID_VALUE, nullptr, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY},
        {[](auto&) {}, CL_INVALID_VALUE, nullptr, cl_mem_flags{1} << 40},
    };
    for (const Case& each : cases) {
        cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {8, 4, 1});
        each.change(description);
        EXPECT_EQ(creation_error(&rgba8, &description, each.flags, each.host), each.error) << "case " << &each - cases;
    }
}

TEST_F(Images, LargerThanAnyMemoryAreRefusedNotAllocated) {
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D_ARRAY, {16384, 16384, 2048});
    const cl_image_format wide{CL_RGBA, CL_FLOAT};
    EXPECT_EQ(creation_error(&wide, &description), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    description.image_array_size = 2049;
    EXPECT_EQ(creation_error(&wide, &description), CL_INVALID_IMAGE_SIZE);
}

TEST_F(Images, OfBuffersShowTheirBytes) {
    std::vector<uint8_t> bytes = random_bytes(1024);
    const OwnedMem buffer = make_buffer(bytes.size());
    write(buffer, bytes);
    cl_image_desc line{};
    line.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
    line.image_width = 64;
    line.buffer = buffer;
    const OwnedMem one = make_image(rgba8, line, 0);
    EXPECT_EQ(read_image(one, {0, 0, 0}, {64, 1, 1}), std::vector<uint8_t>(bytes.begin(), bytes.begin() + 256));
    EXPECT_EQ(image_info<cl_mem>(one, CL_IMAGE_BUFFER), static_cast<cl_mem>(buffer));
    EXPECT_EQ(mem_info<cl_mem>(one, CL_MEM_ASSOCIATED_MEMOBJECT), static_cast<cl_mem>(buffer));
    // What is written to the image is in the buffer.
    const std::vector<uint8_t> other = random_bytes(40);
    write_image(one, {3, 0, 0}, {10, 1, 1}, other.data());
    std::copy(other.begin(), other.end(), bytes.begin() + 12);
    EXPECT_EQ(read<uint8_t>(buffer, bytes.size()), bytes);

    cl_image_desc plane = describe(CL_MEM_OBJECT_IMAGE2D, {7, 5, 1});
    plane.image_row_pitch = 64;
    plane.buffer = buffer;
    const OwnedMem two = make_image(rgba8, plane, 0);
    EXPECT_EQ(image_info<size_t>(two, CL_IMAGE_ROW_PITCH), 64u);
    std::vector<uint8_t> expected;
    for (size_t y = 0; y < 5; ++y)
        expected.insert(expected.end(), bytes.begin() + static_cast<ptrdiff_t>(y * 64),
                        bytes.begin() + static_cast<ptrdiff_t>(y * 64 + 28));
    EXPECT_EQ(read_image(two, {0, 0, 0}, {7, 5, 1}), expected);
    EXPECT_EQ(mem_info<size_t>(two, CL_MEM_SIZE), 320u);

    plane.image_height = 17;
    EXPECT_EQ(creation_error(&rgba8, &plane, 0), CL_INVALID_IMAGE_SIZE);
    plane.image_height = 5;
    plane.image_row_pitch = 24;  // less than a row
    EXPECT_EQ(creation_error(&rgba8, &plane, 0), CL_INVALID_IMAGE_DESCRIPTOR);
    plane.image_row_pitch = 66;  // not a multiple of the element size
    EXPECT_EQ(creation_error(&rgba8, &plane, 0), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    cl_image_desc planes = describe(CL_MEM_OBJECT_IMAGE2D_ARRAY, {4, 4, 2});
    planes.image_row_pitch = 16;
    planes.image_slice_pitch = 66;
    planes.buffer = buffer;
    EXPECT_EQ(creation_error(&rgba8, &planes, 0), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    planes.image_slice_pitch = 68;  // not a multiple of the row pitch
    EXPECT_EQ(creation_error(&rgba8, &planes, 0), CL_INVALID_IMAGE_DESCRIPTOR);
    plane.image_row_pitch = 64;
    EXPECT_EQ(creation_error(&rgba8, &plane, CL_MEM_COPY_HOST_PTR, bytes.data()), CL_INVALID_VALUE);
    EXPECT_EQ(creation_error(&rgba8, &plane, 0, bytes.data()), CL_INVALID_HOST_PTR);
    plane.buffer = foreign_handle<cl_mem>(context);
    EXPECT_EQ(creation_error(&rgba8, &plane, 0), CL_INVALID_IMAGE_DESCRIPTOR);
    const OwnedMem read_only = make_buffer(1024, CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS);
    plane.buffer = read_only;
    EXPECT_EQ(creation_error(&rgba8, &plane, CL_MEM_READ_WRITE), CL_INVALID_VALUE);
    EXPECT_EQ(creation_error(&rgba8, &plane, CL_MEM_HOST_READ_ONLY), CL_INVALID_VALUE);
    const OwnedMem inherited = make_image(rgba8, plane, 0);
    EXPECT_EQ(mem_info<cl_mem_flags>(inherited, CL_MEM_FLAGS), cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS});
}

TEST_F(Images, OfImagesShowTheirElementsInAnotherColorSpace) {
    const OwnedMem image = make_image(image_types[2], rgba8);
    const std::vector<uint8_t> bytes = random_bytes(13 * 5 * 4);
    write_image(image, {0, 0, 0}, {13, 5, 1}, bytes.data());
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {13, 5, 1});
    description.mem_object = image;
    const cl_image_format srgb{CL_sRGBA, CL_UNORM_INT8};
    const OwnedMem view = make_image(srgb, description, CL_MEM_READ_ONLY);
    EXPECT_EQ(read_image(view, {0, 0, 0}, {13, 5, 1}), bytes);
    EXPECT_EQ(image_info<cl_mem>(view, CL_IMAGE_BUFFER), nullptr);
    EXPECT_EQ(mem_info<cl_mem>(view, CL_MEM_ASSOCIATED_MEMOBJECT), static_cast<cl_mem>(image));
    const cl_image_format bgra{CL_BGRA, CL_UNORM_INT8};
    EXPECT_EQ(creation_error(&bgra, &description), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    description.image_height = 4;
    EXPECT_EQ(creation_error(&srgb, &description), CL_INVALID_IMAGE_DESCRIPTOR);
    description = describe(CL_MEM_OBJECT_IMAGE3D, {13, 5, 1});
    description.mem_object = image;
    EXPECT_EQ(creation_error(&rgba8, &description), CL_INVALID_IMAGE_DESCRIPTOR);
}

TEST_F(Images, HostPointersMayHavePitches) {
    for (const cl_mem_flags flag : {cl_mem_flags{CL_MEM_COPY_HOST_PTR}, cl_mem_flags{CL_MEM_USE_HOST_PTR}})
        for (const ImageType& type : image_types) {
            SCOPED_TRACE(type.name);
            cl_image_desc description = describe(type.type, type.extent);
            const bool is_line_array = type.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
            const size_t row = type.extent[0] * 4 + 12;
            description.image_row_pitch = row;
            const bool is_layered = description.image_depth || description.image_array_size;
            const size_t slice = is_line_array ? 2 * row : row * (type.extent[1] + 2);
            if (is_layered)
                description.image_slice_pitch = slice;
            std::vector<uint8_t> host = random_bytes(slice * (is_line_array ? type.extent[1] : type.extent[2]));
            const OwnedMem image = make_image(rgba8, description, flag, host.data());
            EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_ROW_PITCH), row);
            EXPECT_EQ(image_info<size_t>(image, CL_IMAGE_SLICE_PITCH), is_layered ? slice : 0);
            std::vector<uint8_t> expected;
            for (size_t z = 0; z < type.extent[2]; ++z)
                for (size_t y = 0; y < type.extent[1]; ++y) {
                    const size_t at = is_line_array ? y * slice : z * slice + y * row;
                    expected.insert(expected.end(), host.begin() + static_cast<ptrdiff_t>(at),
                                    host.begin() + static_cast<ptrdiff_t>(at + type.extent[0] * 4));
                }
            EXPECT_EQ(read_image(image, {0, 0, 0}, type.extent), expected);
        }
}

TEST_F(Images, OfAllTypesShowTheBytesOfABuffer) {
    const std::vector<uint8_t> bytes = random_bytes(4096);
    const OwnedMem buffer = make_buffer(bytes.size());
    write(buffer, bytes);
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        cl_image_desc description = describe(type.type, type.extent);
        const size_t row = type.extent[0] * 4 + 8;
        const bool is_line_array = type.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        const size_t slice = is_line_array ? row * 2 : row * type.extent[1];
        description.image_row_pitch = row;
        if (description.image_depth || description.image_array_size)
            description.image_slice_pitch = slice;
        description.buffer = buffer;
        const OwnedMem image = make_image(rgba8, description, 0);
        std::vector<uint8_t> expected;
        for (size_t z = 0; z < type.extent[2]; ++z)
            for (size_t y = 0; y < type.extent[1]; ++y) {
                const auto at = static_cast<ptrdiff_t>(is_line_array ? y * slice : z * slice + y * row);
                expected.insert(expected.end(), bytes.begin() + at,
                                bytes.begin() + at + static_cast<ptrdiff_t>(type.extent[0] * 4));
            }
        EXPECT_EQ(read_image(image, {0, 0, 0}, type.extent), expected);
    }
}

// --- requirements (cl_ext_image_requirements_info) ---

class Requirements : public ImageTest {
protected:
    void SetUp() override {
        ImageTest::SetUp();
        ask_ = reinterpret_cast<clGetImageRequirementsInfoEXT_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetImageRequirementsInfoEXT"));
        ASSERT_NE(ask_, nullptr);
    }
    template <class T>
    T of(cl_image_requirements_info_ext name, const cl_image_format* format, const cl_image_desc* description) {
        T value{};
        EXPECT_EQ(ask_(context, nullptr, 0, format, description, name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    cl_int error_of(cl_image_requirements_info_ext name, const cl_image_format* format,
                    const cl_image_desc* description, cl_mem_flags flags = 0) {
        size_t value = 0;
        return ask_(context, nullptr, flags, format, description, name, sizeof value, &value, nullptr);
    }
    clGetImageRequirementsInfoEXT_fn ask_ = nullptr;
};

TEST_F(Requirements, SizesAreEnoughForABuffer) {
    for (const ImageType& type : image_types) {
        SCOPED_TRACE(type.name);
        cl_image_desc description = describe(type.type, type.extent);
        description.image_row_pitch = 128;
        const auto size = of<size_t>(CL_IMAGE_REQUIREMENTS_SIZE_EXT, &rgba8, &description);
        const OwnedMem buffer = make_buffer(size);
        description.buffer = buffer;
        const OwnedMem image = make_image(rgba8, description, 0);
        EXPECT_EQ(mem_info<size_t>(image, CL_MEM_SIZE), size);
        const OwnedMem smaller = make_buffer(size - 1);
        description.buffer = smaller;
        EXPECT_EQ(creation_error(&rgba8, &description, 0), CL_INVALID_IMAGE_SIZE);
    }
}

TEST_F(Requirements, LimitsAreTheDevices) {
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE3D, {0, 0, 0});
    EXPECT_EQ(of<cl_uint>(CL_IMAGE_REQUIREMENTS_MAX_WIDTH_EXT, &rgba8, &description), 2048u);
    EXPECT_EQ(of<cl_uint>(CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT, nullptr, nullptr), 2048u);
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_MAX_ARRAY_SIZE_EXT, &rgba8, &description), CL_INVALID_IMAGE_DESCRIPTOR);
    description = describe(CL_MEM_OBJECT_IMAGE2D_ARRAY, {0, 0, 0});
    EXPECT_EQ(of<cl_uint>(CL_IMAGE_REQUIREMENTS_MAX_ARRAY_SIZE_EXT, nullptr, &description), 2048u);
    EXPECT_EQ(of<cl_uint>(CL_IMAGE_REQUIREMENTS_MAX_HEIGHT_EXT, nullptr, &description), 16384u);
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT, nullptr, &description), CL_INVALID_IMAGE_DESCRIPTOR);
    EXPECT_EQ(of<size_t>(CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT, &rgba8, nullptr), 4u);
    EXPECT_EQ(of<size_t>(CL_IMAGE_REQUIREMENTS_BASE_ADDRESS_ALIGNMENT_EXT, nullptr, nullptr), 16u);
    EXPECT_EQ(of<size_t>(CL_IMAGE_REQUIREMENTS_SLICE_PITCH_ALIGNMENT_EXT, &rgba8, nullptr), 4u);
}

TEST_F(Requirements, InvalidArgumentsAreRefused) {
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {8, 4, 1});
    const cl_image_format wrong{CL_RGB, CL_UNORM_INT8};
    size_t value = 0;
    EXPECT_EQ(ask_(foreign_handle<cl_context>(context), nullptr, 0, &rgba8, &description,
                   CL_IMAGE_REQUIREMENTS_SIZE_EXT, sizeof value, &value, nullptr),
              CL_INVALID_CONTEXT);
    const cl_mem_properties unknown[] = {1, 1, 0};
    EXPECT_EQ(
        ask_(context, unknown, 0, &rgba8, &description, CL_IMAGE_REQUIREMENTS_SIZE_EXT, sizeof value, &value, nullptr),
        CL_INVALID_PROPERTY);
    EXPECT_EQ(ask_(context, nullptr, 0, &rgba8, &description, CL_IMAGE_REQUIREMENTS_SIZE_EXT, 1, &value, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_SIZE_EXT, nullptr, &description), CL_INVALID_VALUE);
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_SIZE_EXT, &rgba8, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_SIZE_EXT, &wrong, &description), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    EXPECT_EQ(error_of(0, &rgba8, &description), CL_INVALID_VALUE);
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_SIZE_EXT, &rgba8, &description, cl_mem_flags{1} << 40), CL_INVALID_VALUE);
    const cl_image_desc empty = describe(CL_MEM_OBJECT_IMAGE2D, {8, 0, 1});
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_SIZE_EXT, &rgba8, &empty), CL_INVALID_IMAGE_DESCRIPTOR);
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT, &rgba8, &empty), CL_INVALID_IMAGE_DESCRIPTOR);
    description.image_type = CL_MEM_OBJECT_BUFFER;
    EXPECT_EQ(error_of(CL_IMAGE_REQUIREMENTS_MAX_WIDTH_EXT, &rgba8, &description), CL_INVALID_IMAGE_DESCRIPTOR);
}

// --- formats ---

std::vector<cl_image_format> formats(cl_context context, cl_mem_flags flags, cl_mem_object_type type) {
    cl_uint count = 0;
    EXPECT_EQ(clGetSupportedImageFormats(context, flags, type, 0, nullptr, &count), CL_SUCCESS);
    std::vector<cl_image_format> list(count);
    EXPECT_EQ(clGetSupportedImageFormats(context, flags, type, count, list.data(), nullptr), CL_SUCCESS);
    return list;
}

bool has(const std::vector<cl_image_format>& list, cl_channel_order order, cl_channel_type type) {
    return std::ranges::any_of(list, [&](const cl_image_format& format) {
        return format.image_channel_order == order && format.image_channel_data_type == type;
    });
}

TEST_F(Images, FormatsIncludeThoseThatTheSpecificationDemands) {
    for (const ImageType& type : image_types)
        for (const cl_mem_flags flags :
             {CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE, static_cast<int>(CL_MEM_KERNEL_READ_AND_WRITE)}) {
            const auto list = formats(context, flags, type.type);
            for (const cl_channel_order order : {CL_R, CL_RG, CL_RGBA})
                for (const cl_channel_type channel :
                     {CL_UNORM_INT8, CL_UNORM_INT16, CL_SNORM_INT8, CL_SNORM_INT16, CL_SIGNED_INT8, CL_SIGNED_INT16,
                      CL_SIGNED_INT32, CL_UNSIGNED_INT8, CL_UNSIGNED_INT16, CL_UNSIGNED_INT32, CL_HALF_FLOAT, CL_FLOAT})
                    EXPECT_TRUE(has(list, order, channel)) << order << " " << channel;
            EXPECT_TRUE(has(list, CL_BGRA, CL_UNORM_INT8));
            EXPECT_EQ(has(list, CL_sRGBA, CL_UNORM_INT8), flags == CL_MEM_READ_ONLY);
            const bool is_flat = type.type == CL_MEM_OBJECT_IMAGE2D || type.type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
            EXPECT_EQ(has(list, CL_DEPTH, CL_FLOAT), is_flat);
            EXPECT_EQ(has(list, CL_DEPTH, CL_UNORM_INT16), is_flat);
        }
}

TEST_F(Images, CanBeCreatedWithEveryFormatThatIsListed) {
    for (const ImageType& type : image_types)
        for (const cl_image_format& format : formats(context, CL_MEM_READ_ONLY, type.type)) {
            const cl_image_desc description = describe(type.type, type.extent);
            EXPECT_EQ(creation_error(&format, &description, CL_MEM_READ_ONLY), CL_SUCCESS)
                << type.name << " " << format.image_channel_order << " " << format.image_channel_data_type;
        }
}

TEST_F(Images, FormatsAreNotListedForInvalidArguments) {
    cl_uint count = 1;
    cl_image_format format{};
    EXPECT_EQ(clGetSupportedImageFormats(foreign_handle<cl_context>(context), CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D,
                                         0, nullptr, &count),
              CL_INVALID_CONTEXT);
    for (const cl_mem_object_type type : {CL_MEM_OBJECT_BUFFER, CL_MEM_OBJECT_PIPE, 0})
        EXPECT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, type, 0, nullptr, &count), CL_INVALID_VALUE);
    EXPECT_EQ(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, &format, &count),
              CL_INVALID_VALUE);
    for (const cl_mem_flags flags :
         {cl_mem_flags{1} << 40, cl_mem_flags{CL_MEM_READ_WRITE} | cl_mem_flags{1} << 40,
          cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY}, cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_READ_ONLY},
          cl_mem_flags{CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS}})
        EXPECT_EQ(clGetSupportedImageFormats(context, flags, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count),
                  CL_INVALID_VALUE)
            << std::hex << flags;
}

} // namespace
} // namespace polder::test
