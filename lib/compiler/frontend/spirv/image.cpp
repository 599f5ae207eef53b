// Instructions on images become calls of OpenCL C's read_image*, write_image* and get_image_*, by the names that Clang gives
// them. An image with a sampler (OpTypeSampledImage) is a structure of the two.
#include "image.h"

#include <algorithm>
#include <array>
#include <llvm/IR/Constants.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

// The operands of OpTypeImage.
enum Literal : size_t { of_dimension = 1, of_depth, of_arrays, of_samples, of_sampling, of_format, of_access };

uint32_t literal(const Type& image, Literal index) { return index < image.literals.size() ? image.literals[index] : 0; }
bool is_depth(const Type& image) { return literal(image, of_depth) == 1; }
bool is_array(const Type& image) { return literal(image, of_arrays) != 0; }

struct Shape {
    spv::Dim dimension;
    std::string_view name;
    unsigned coordinates;  // without the layer
};
constexpr std::array shapes{
    Shape{spv::Dim1D, "1d", 1},
    Shape{spv::Dim2D, "2d", 2},
    Shape{spv::Dim3D, "3d", 3},
    Shape{spv::DimBuffer, "1d_buffer", 1},
};

const Shape* shape_of(const Type& image) {
    const auto found =
        std::ranges::find(shapes, static_cast<spv::Dim>(literal(image, of_dimension)), &Shape::dimension);
    return image.kind == spv::OpTypeImage && found != shapes.end() ? &*found : nullptr;
}

// "ocl_image2d_array_ro": the type in a mangled name.
std::string mangled_type(const Type& image) {
    constexpr std::array<std::string_view, 3> accesses{"_ro", "_wo", "_rw"};
    std::string name = image_type_name(image);
    name.resize(name.size() - 2);  // "_t"
    return "ocl_" + name + std::string{accesses[std::min<size_t>(literal(image, of_access), 2)]};
}

// Coordinates as OpenCL C's functions take them: one, two or four numbers. Modules may have more than the image needs, and
// three where the function takes four.
Value* coordinates(Body& body, const Instruction& instruction, size_t index, const Type& image, MangledName& name) {
    Builder& builder = body.builder();
    Value* given = body.value(instruction, index);
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(given->getType());
    llvm::Type* element = given->getType()->getScalarType();
    const unsigned has = vector ? vector->getNumElements() : 1;
    const unsigned needed = shape_of(image)->coordinates + (is_array(image) ? 1 : 0);
    if (has < needed || (!element->isFloatTy() && !element->isIntegerTy(32))) {
        body.refuse(instruction, "these are no coordinates of the image");
        return llvm::PoisonValue::get(builder.getInt32Ty());
    }
    const std::string code = element->isFloatTy() ? "f" : "i";
    if (needed == 1) {
        name.add_code(code);
        return vector ? builder.CreateExtractElement(given, uint64_t{0}) : given;
    }
    const unsigned count = needed == 2 ? 2 : 4;
    name.add_code("Dv" + std::to_string(count) + "_" + code);
    Value* result = llvm::Constant::getNullValue(llvm::FixedVectorType::get(element, count));
    for (unsigned i = 0; i < needed; ++i)
        result = builder.CreateInsertElement(result, builder.CreateExtractElement(given, i), i);
    return result;
}

// The suffix "f", "i" or "h" of read_image and write_image; nothing for elements that images do not have.
std::optional<std::string> element_suffix(llvm::Type* type) {
    llvm::Type* element = type->getScalarType();
    if (element->isHalfTy())
        return "h";
    if (element->isFloatTy())
        return "f";
    return element->isIntegerTy(32) ? std::optional<std::string>{"i"} : std::nullopt;
}

// A read returns four numbers, or one for depth images. Modules may want the other form.
Value* in_form(Builder& builder, Value* read, llvm::Type* wanted) {
    if (read->getType() == wanted)
        return read;
    if (wanted->isVectorTy())
        return builder.CreateInsertElement(llvm::Constant::getNullValue(wanted), read, uint64_t{0});
    return builder.CreateExtractElement(read, uint64_t{0});
}

struct Sampled {
    Value* image;
    Value* sampler;  // null: none
};

void read(Body& body, const Instruction& instruction, const Sampled& from, const Type& image, size_t coordinate) {
    Builder& builder = body.builder();
    llvm::Type* wanted = body.result_type(instruction);
    const auto suffix = wanted == nullptr ? std::nullopt : element_suffix(wanted);
    const bool has_form = wanted != nullptr &&
                          (!wanted->isVectorTy() || llvm::cast<llvm::FixedVectorType>(wanted)->getNumElements() == 4);
    if (!suffix || !has_form || (is_depth(image) && *suffix != "f"))
        return body.refuse(instruction, "images have no elements of this type");
    MangledName name = image_function(body, "read_image" + *suffix, image);
    llvm::SmallVector<Value*, 3> arguments{from.image};
    if (from.sampler != nullptr) {
        name.add_named("ocl_sampler");
        arguments.push_back(from.sampler);
    }
    arguments.push_back(coordinates(body, instruction, coordinate, image, name));
    llvm::Type* element = wanted->getScalarType();
    llvm::Type* type = is_depth(image) ? element : llvm::FixedVectorType::get(element, 4);
    body.define(instruction, in_form(builder, body.call(name.text(), type, arguments, Effect::reads), wanted));
}

// Whether the operands after the coordinates of a read or write are supported: a level of detail of zero, the sign of integers
// (which the image's format also determines), and the hint that the element is not used again.
bool has_supported_operands(Body& body, const Instruction& instruction, size_t index) {
    const uint32_t ignored =
        spv::ImageOperandsSignExtendMask | spv::ImageOperandsZeroExtendMask | spv::ImageOperandsNontemporalMask;
    const uint32_t mask = instruction.operand(index);
    if ((mask & ~(ignored | spv::ImageOperandsLodMask)) != 0)
        return false;
    if ((mask & spv::ImageOperandsLodMask) == 0)
        return true;
    const auto* level = llvm::dyn_cast<llvm::Constant>(body.value(instruction, index + 1));
    return level != nullptr && level->isZeroValue();
}

bool check_operands(Body& body, const Instruction& instruction, size_t index) {
    if (has_supported_operands(body, instruction, index))
        return true;
    body.refuse(instruction, "images have no levels of detail, gradients or samples");
    return false;
}

void combine(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    llvm::Type* type = body.result_type(instruction);
    Value* const image = body.value(instruction, 0);
    Value* const sampler = body.value(instruction, 1);
    auto* pair = llvm::dyn_cast_or_null<llvm::StructType>(type);
    if (pair == nullptr || pair->getNumElements() != 2 || pair->getElementType(0) != image->getType() ||
        pair->getElementType(1) != sampler->getType())
        return body.refuse(instruction, "the operands are not an image and a sampler");
    Value* const with_image = builder.CreateInsertValue(llvm::PoisonValue::get(pair), image, {0});
    body.define(instruction, builder.CreateInsertValue(with_image, sampler, {1}));
}

void sample(Body& body, const Instruction& instruction) {
    const Type* image = image_at(body, instruction, 0);
    Value* const pair = body.value(instruction, 0);
    if (image == nullptr || !check_operands(body, instruction, 2))
        return;
    if (!pair->getType()->isStructTy())
        return body.refuse(instruction, "the image has no sampler");
    read(body, instruction,
         {body.builder().CreateExtractValue(pair, {0}), body.builder().CreateExtractValue(pair, {1})}, *image, 1);
}

void write(Body& body, const Instruction& instruction) {
    const Type* image = image_at(body, instruction, 0);
    if (image == nullptr || !check_operands(body, instruction, 3))
        return;
    Builder& builder = body.builder();
    Value* texel = body.value(instruction, 2);
    const auto suffix = element_suffix(texel->getType());
    if (!suffix || (is_depth(*image) && *suffix != "f"))
        return body.refuse(instruction, "images have no elements of this type");
    MangledName name = image_function(body, "write_image" + *suffix, *image);
    Value* const place = coordinates(body, instruction, 1, *image, name);
    const std::string code = *suffix == "h" ? "Dh" : *suffix;
    llvm::Type* element = texel->getType()->getScalarType();
    llvm::Type* type = is_depth(*image) ? element : llvm::FixedVectorType::get(element, 4);
    const auto* given = llvm::dyn_cast<llvm::FixedVectorType>(texel->getType());
    if (given != nullptr && given->getNumElements() != 4)
        return body.refuse(instruction, "an element has one number or four");
    // The mangled name refers to coordinates of the same type.
    const bool repeats = place->getType() == type && type->isVectorTy();
    name.add_code(repeats ? "S0_" : type->isVectorTy() ? "Dv4_" + code : code);
    body.call(name.text(), builder.getVoidTy(), {body.value(instruction, 0), place, in_form(builder, texel, type)},
              Effect::any);
}

// SPIR-V numbers formats and orders from zero; OpenCL C has constants, which begin at `first`.
void query_format(Body& body, const Instruction& instruction, std::string_view function, uint32_t first) {
    const Type* image = image_at(body, instruction, 0);
    if (image == nullptr)
        return;
    Builder& builder = body.builder();
    llvm::Type* type = body.result_type(instruction);
    if (type == nullptr || !type->isIntegerTy())
        return body.refuse(instruction, "the result is not an integer");
    Value* const number = body.call(image_function(body, function, *image).text(), builder.getInt32Ty(),
                                    {body.value(instruction, 0)}, Effect::reads);
    body.define(instruction, builder.CreateZExtOrTrunc(builder.CreateSub(number, builder.getInt32(first)), type));
}

void query_size(Body& body, const Instruction& instruction) {
    const Type* image = image_at(body, instruction, 0);
    if (image == nullptr)
        return;
    Builder& builder = body.builder();
    llvm::SmallVector<std::string_view, 3> functions{"get_image_width"};
    if (shape_of(*image)->coordinates > 1)
        functions.emplace_back("get_image_height");
    if (shape_of(*image)->coordinates > 2)
        functions.emplace_back("get_image_depth");
    if (is_array(*image))
        functions.emplace_back("get_image_array_size");
    llvm::Type* wanted = body.result_type(instruction);
    const auto* vector = llvm::dyn_cast_or_null<llvm::FixedVectorType>(wanted);
    if (wanted == nullptr || !wanted->isIntOrIntVectorTy() ||
        (vector ? vector->getNumElements() : 1) != functions.size())
        return body.refuse(instruction, "the result does not have the image's dimensions");
    Value* all = llvm::PoisonValue::get(wanted);
    for (unsigned i = 0; i < functions.size(); ++i) {
        llvm::Type* type = functions[i] == "get_image_array_size" ? builder.getInt64Ty() : builder.getInt32Ty();
        Value* const size = builder.CreateZExtOrTrunc(body.call(image_function(body, functions[i], *image).text(), type,
                                                                {body.value(instruction, 0)}, Effect::reads),
                                                      wanted->getScalarType());
        all = vector ? builder.CreateInsertElement(all, size, i) : size;
    }
    body.define(instruction, all);
}

void take_image(Body& body, const Instruction& instruction) {
    Value* const pair = body.value(instruction, 0);
    if (!pair->getType()->isStructTy())
        return body.refuse(instruction, "the operand is not an image with a sampler");
    body.define(instruction, body.builder().CreateExtractValue(pair, {0}));
}

}  // namespace

MangledName image_function(Body& body, std::string_view name, const Type& image) {
    MangledName mangled(name, body.types());
    mangled.add_named(mangled_type(image));
    return mangled;
}

const Type* image_at(Body& body, const Instruction& instruction, size_t index) {
    const Type& type = body.types().get(body.type_of(instruction, index));
    const Type& image = type.kind == spv::OpTypeSampledImage ? body.types().get(type.element) : type;
    if (shape_of(image) == nullptr) {
        body.refuse(instruction, "the operand is not an image");
        return nullptr;
    }
    return &image;
}

std::string image_type_name(const Type& type) {
    if (type.kind == spv::OpTypeSampler)
        return "sampler_t";
    const Shape* shape = shape_of(type);
    if (shape == nullptr)
        return {};
    return "image" + std::string{shape->name} + (is_array(type) ? "_array" : "") + (is_depth(type) ? "_depth" : "") +
           "_t";
}

std::string image_access_name(const Type& type) {
    constexpr std::array<const char*, 3> names{"read_only", "write_only", "read_write"};
    return shape_of(type) == nullptr ? "none" : names[std::min<size_t>(literal(type, of_access), 2)];
}

std::optional<uint32_t> sampler_bits(const Instruction& instruction) {
    const uint32_t addressing = instruction.operand(0), is_normalized = instruction.operand(1),
                   filter = instruction.operand(2);
    if (addressing > spv::SamplerAddressingModeRepeatMirrored || is_normalized > 1 ||
        filter > spv::SamplerFilterModeLinear)
        return std::nullopt;
    return is_normalized | addressing << 1 | (filter == spv::SamplerFilterModeLinear ? 0x20 : 0x10);
}

Value* make_sampler(Body& body, llvm::Type* type, Value* bits) {
    return body.call("__translate_sampler_initializer", type, {bits}, Effect::none);
}

bool emit_image(Body& body, const Instruction& instruction) {
    constexpr uint32_t first_type = 0x10d0, first_order = 0x10b0;  // CLK_SNORM_INT8, CLK_R
    switch (instruction.opcode) {
    case spv::OpSampledImage: combine(body, instruction); return true;
    case spv::OpImage: take_image(body, instruction); return true;
    case spv::OpImageSampleExplicitLod: sample(body, instruction); return true;
    case spv::OpImageRead:
        if (const Type* image = image_at(body, instruction, 0); image && check_operands(body, instruction, 2))
            read(body, instruction, {body.value(instruction, 0), nullptr}, *image, 1);
        return true;
    case spv::OpImageWrite: write(body, instruction); return true;
    case spv::OpImageQueryFormat:
        query_format(body, instruction, "get_image_channel_data_type", first_type);
        return true;
    case spv::OpImageQueryOrder: query_format(body, instruction, "get_image_channel_order", first_order); return true;
    case spv::OpImageQuerySizeLod:
    case spv::OpImageQuerySize: query_size(body, instruction); return true;
    default: return false;
    }
}

}  // namespace polder::compiler::spirv
