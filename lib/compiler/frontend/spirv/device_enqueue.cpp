// Instructions on queues, blocks and events of the device (SPIR-V specification 3.49.24, "Device-Side Enqueue"): calls of the functions of
// lib/kernel/cl/device_enqueue.cl. A table lists those whose operands are all of a kind that has a letter; the instructions that name a block are
// checked one operand after the other, since only its function says what may be passed.
//
// A block (the operand Invoke) is a function. A kernel is made of each, as Clang makes one: it takes the address of the copied parameter and the places in local
// memory, and calls the function. Modules of the SPIR-V translator pass the address of a range, and addresses of the sizes of local memory,
// where the specification has values: both are taken.
#include "body.h"

#include <algorithm>
#include <array>
#include <llvm/IR/Constants.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::spirv {
namespace {

using llvm::Value;

constexpr unsigned local_space = 3;

llvm::Type* generic_pointer(Body& body) { return llvm::PointerType::get(body.builder().getContext(), generic_space); }

std::string nth(size_t index) { return "operand " + std::to_string(index); }

const Type& operand_type(Body& body, const Instruction& instruction, size_t index) {
    return body.types().get(body.type_of(instruction, index));
}

// --- operands that a letter describes ---

struct EnqueueFunction {
    spv::Op opcode;
    std::string_view name;
    // One letter each: q a queue, e an event, E a pointer to events, u a number of 32 bits, g a pointer to global memory.
    std::string_view operands;
    enum class Result : uint8_t { nothing, number, truth, queue, event } result;
};
using enum EnqueueFunction::Result;

constexpr std::array enqueue_functions{
    EnqueueFunction{spv::OpEnqueueMarker, "_Z14enqueue_marker9ocl_queuejPU3AS4K12ocl_clkeventPU3AS4S0_", "quEE",
                    number},
    EnqueueFunction{spv::OpRetainEvent, "_Z12retain_event12ocl_clkevent", "e", nothing},
    EnqueueFunction{spv::OpReleaseEvent, "_Z13release_event12ocl_clkevent", "e", nothing},
    EnqueueFunction{spv::OpCreateUserEvent, "_Z17create_user_eventv", "", event},
    EnqueueFunction{spv::OpIsValidEvent, "_Z14is_valid_event12ocl_clkevent", "e", truth},
    EnqueueFunction{spv::OpSetUserEventStatus, "_Z21set_user_event_status12ocl_clkeventi", "eu", nothing},
    EnqueueFunction{spv::OpCaptureEventProfilingInfo, "_Z28capture_event_profiling_info12ocl_clkeventiPU3AS1v", "eug",
                    nothing},
    EnqueueFunction{spv::OpGetDefaultQueue, "_Z17get_default_queuev", "", queue},
};

llvm::Type* llvm_type(Body& body, EnqueueFunction::Result result) {
    llvm::LLVMContext& context = body.builder().getContext();
    switch (result) {
    case number: return llvm::Type::getInt32Ty(context);
    case truth: return llvm::Type::getInt1Ty(context);
    case queue: return queue_type(context);
    case event: return device_event_type(context);
    case nothing: break;
    }
    return llvm::Type::getVoidTy(context);
}

// The operand as the function takes it; null when it is not of this kind.
Value* enqueue_operand(Body& body, const Instruction& instruction, size_t index, char kind) {
    Value* const value = body.value(instruction, index);
    const Type& type = operand_type(body, instruction, index);
    const bool is_pointer = type.kind == spv::OpTypePointer && value->getType()->isPointerTy();
    switch (kind) {
    case 'q': return type.kind == spv::OpTypeQueue ? value : nullptr;
    case 'e': return type.kind == spv::OpTypeDeviceEvent ? value : nullptr;
    case 'u': return value->getType()->isIntegerTy(32) ? value : nullptr;
    case 'g': return is_pointer && type.storage == spv::StorageClassCrossWorkgroup ? value : nullptr;
    case 'E':
        if (!is_pointer || body.types().get(type.element).kind != spv::OpTypeDeviceEvent)
            return nullptr;
        return body.builder().CreateAddrSpaceCast(value, generic_pointer(body));
    default: return nullptr;
    }
}

// Appends the operands from `first` on; false, and refused, where one is of another kind.
bool add_operands(Body& body, const Instruction& instruction, size_t first, std::string_view kinds,
                  llvm::SmallVectorImpl<Value*>& arguments) {
    for (size_t i = 0; i < kinds.size(); ++i) {
        arguments.push_back(enqueue_operand(body, instruction, first + i, kinds[i]));
        if (arguments.back() != nullptr)
            continue;
        body.refuse(instruction, nth(first + i) + " is not of the type that the instruction needs");
        return false;
    }
    return true;
}

void call_enqueue_function(Body& body, const Instruction& instruction, const EnqueueFunction& function) {
    llvm::SmallVector<Value*, 4> arguments;
    if (!add_operands(body, instruction, 0, function.operands, arguments))
        return;
    Value* const result =
        body.call(std::string{function.name}, llvm_type(body, function.result), arguments, Effect::any);
    if (function.result != nothing)
        body.define(instruction, result);
}

// --- ranges ---

// A work dimension, and three numbers each for offset, global size and local size.
bool is_range(llvm::Type* type) {
    auto* const structure = llvm::dyn_cast_or_null<llvm::StructType>(type);
    if (structure == nullptr || structure->isOpaque() || structure->getNumElements() != 4 ||
        !structure->getElementType(0)->isIntegerTy(32))
        return false;
    return llvm::all_of(structure->elements().drop_front(), [](llvm::Type* each) {
        auto* const array = llvm::dyn_cast<llvm::ArrayType>(each);
        return array != nullptr && array->getNumElements() == 3 && array->getElementType()->isIntegerTy(64);
    });
}

Value* variable(Body& body, llvm::Type* type) {
    llvm::BasicBlock& entry = body.function().getEntryBlock();
    Builder at_entry(&entry, entry.getFirstInsertionPt());
    return at_entry.CreateAlloca(type);
}

// The address, in private memory, of a copy of the range; null, and refused, when there is none.
Value* range_in_memory(Body& body, const Instruction& instruction, size_t index) {
    Value* range = body.value(instruction, index);
    const Type& type = operand_type(body, instruction, index);
    llvm::Type* const described =
        body.types().llvm(type.kind == spv::OpTypePointer ? type.element : body.type_of(instruction, index));
    if (!is_range(described) || (range->getType() != described && !range->getType()->isPointerTy())) {
        body.refuse(instruction, nth(index) + " is not a range, which OpBuildNDRange makes");
        return nullptr;
    }
    if (range->getType() != described)
        range = body.builder().CreateLoad(described, range);
    Value* const place = variable(body, described);
    body.builder().CreateStore(range, place);
    return place;
}

// The number of dimensions of a size: 1 for a number, 2 or 3 for an array. 0: it is no size.
unsigned dimensions(llvm::Type* type) {
    if (type->isIntegerTy(64))
        return 1;
    auto* const array = llvm::dyn_cast<llvm::ArrayType>(type);
    const bool is_size = array != nullptr && array->getElementType()->isIntegerTy(64) && array->getNumElements() >= 2 &&
                         array->getNumElements() <= 3;
    return is_size ? static_cast<unsigned>(array->getNumElements()) : 0;
}

// Operands: global size, local size (0: the device chooses), global offset.
void build_range(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    llvm::Type* const type = body.result_type(instruction);
    const unsigned dims = dimensions(body.value(instruction, 0)->getType());
    if (!is_range(type))
        return body.refuse(instruction, "the result is not a work dimension and three arrays of three sizes");
    for (size_t i = 0; i < 3; ++i)
        if (dims == 0 || dimensions(body.value(instruction, i)->getType()) != dims)
            return body.refuse(instruction,
                               nth(i) + " is not a number of 64 bits, or an array of two or three, as the others are");
    Value* range = builder.CreateInsertValue(llvm::Constant::getNullValue(type), builder.getInt32(dims), 0);
    constexpr std::array<size_t, 3> operands{2, 0, 1};  // in the order of the members
    for (unsigned member = 0; member < 3; ++member) {
        Value* const size = body.value(instruction, operands[member]);
        for (unsigned d = 0; d < dims; ++d)
            range = builder.CreateInsertValue(range, dims == 1 ? size : builder.CreateExtractValue(size, d),
                                              {member + 1, d});
    }
    body.define(instruction, range);
}

// --- blocks ---

// The function that the operand names, when blocks can be made of it: it returns nothing, and takes the address of the parameter, then
// pointers to local memory. Null, and refused, otherwise.
llvm::Function* invoked(Body& body, const Instruction& instruction, size_t index) {
    auto* const function =
        llvm::dyn_cast_or_null<llvm::Function>(body.translation().known_value(instruction.operand(index)));
    const Type& type = operand_type(body, instruction, index);
    if (function == nullptr || type.kind != spv::OpTypeFunction) {
        body.refuse(instruction, "Invoke, " + nth(index) + ", is not a function");
        return nullptr;
    }
    const auto pointer = [&](size_t parameter) -> const Type& { return body.types().get(type.members[parameter]); };
    if (!function->getReturnType()->isVoidTy() || type.members.empty() || pointer(0).kind != spv::OpTypePointer ||
        pointer(0).storage == spv::StorageClassWorkgroup) {
        body.refuse(instruction, "Invoke, " + nth(index) + ", does not take a pointer first, or returns a value");
        return nullptr;
    }
    for (size_t i = 1; i < type.members.size(); ++i)
        if (pointer(i).kind != spv::OpTypePointer || pointer(i).storage != spv::StorageClassWorkgroup) {
            body.refuse(instruction, "parameter " + std::to_string(i) + " of Invoke is not a pointer to local memory");
            return nullptr;
        }
    return function;
}

// The kernel that calls the function, made when first asked for.
llvm::Function* kernel_of(Body& body, llvm::Function& function) {
    llvm::Module& module = body.translation().module();
    const std::string name = "spirv.block." + function.getName().str();
    if (llvm::Function* const made = module.getFunction(name))
        return made;
    llvm::LLVMContext& context = module.getContext();
    llvm::SmallVector<llvm::Type*, 4> types(function.arg_size(), llvm::PointerType::get(context, local_space));
    types.front() = generic_pointer(body);
    auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false);
    auto* const kernel = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
    kernel->setCallingConv(llvm::CallingConv::SPIR_KERNEL);
    kernel->addFnAttr(llvm::Attribute::Convergent);
    kernel->addFnAttr(llvm::Attribute::NoUnwind);
    Builder builder(llvm::BasicBlock::Create(context, "", kernel));
    llvm::SmallVector<Value*, 4> arguments;
    for (llvm::Argument& argument : kernel->args())
        arguments.push_back(&argument);
    arguments.front() = builder.CreateAddrSpaceCast(arguments.front(), function.getArg(0)->getType());
    builder.CreateCall(&function, arguments)->setCallingConv(function.getCallingConv());
    builder.CreateRetVoid();
    return kernel;
}

// What four operands say: Invoke, Param, Param Size, Param Align.
struct Block {
    llvm::Function* function = nullptr;  // null: refused
    Value* kernel = nullptr;
    Value* literal = nullptr;
    Value* bytes = nullptr;
    Value* alignment = nullptr;
};

Block block_operands(Body& body, const Instruction& instruction, size_t first) {
    Block block{.function = invoked(body, instruction, first)};
    if (block.function == nullptr)
        return {};
    const auto refuse = [&](size_t index, const char* why) {
        body.refuse(instruction, nth(index) + " " + why);
        return Block{};
    };
    Value* const literal = body.value(instruction, first + 1);
    if (!literal->getType()->isPointerTy())
        return refuse(first + 1, "is not a pointer to the block's parameter");
    block.literal = body.builder().CreateAddrSpaceCast(literal, generic_pointer(body));
    block.bytes = enqueue_operand(body, instruction, first + 2, 'u');
    block.alignment = enqueue_operand(body, instruction, first + 3, 'u');
    if (block.bytes == nullptr)
        return refuse(first + 2, "is not the size of the block's parameter, a number of 32 bits");
    const auto alignment = body.integer(instruction, first + 3);
    if (block.alignment == nullptr || (alignment && !llvm::isPowerOf2_64(*alignment)))
        return refuse(first + 3, "is not the alignment of the block's parameter, a power of two of 32 bits");
    block.kernel = llvm::ConstantExpr::getAddrSpaceCast(kernel_of(body, *block.function), generic_pointer(body));
    return block;
}

// The address of the sizes, as 64-bit numbers; null when there are none, or they are refused.
Value* local_sizes(Body& body, const Instruction& instruction, size_t first, size_t count) {
    Builder& builder = body.builder();
    if (count == 0)
        return llvm::ConstantPointerNull::get(llvm::PointerType::get(builder.getContext(), 0));
    auto* const type = llvm::ArrayType::get(builder.getInt64Ty(), count);
    Value* const sizes = variable(body, type);
    for (size_t i = 0; i < count; ++i) {
        Value* size = body.value(instruction, first + i);
        llvm::Type* const pointee = body.types().llvm(operand_type(body, instruction, first + i).element);
        if (size->getType()->isPointerTy() && pointee != nullptr && pointee->isIntegerTy())
            size = builder.CreateLoad(pointee, size);
        if (!size->getType()->isIntegerTy()) {
            body.refuse(instruction, nth(first + i) + " is not a size of local memory");
            return nullptr;
        }
        builder.CreateStore(builder.CreateZExtOrTrunc(size, builder.getInt64Ty()),
                            builder.CreateConstInBoundsGEP2_64(type, sizes, 0, i));
    }
    return sizes;
}

constexpr size_t block_at = 6, sizes_at = 10;

// Operands: queue, flags, range, number of events, events, the block's event, the block, then a size for each pointer to local memory.
void enqueue(Body& body, const Instruction& instruction) {
    llvm::SmallVector<Value*, 12> arguments;
    if (!add_operands(body, instruction, 0, "qu", arguments))
        return;
    arguments.push_back(range_in_memory(body, instruction, 2));
    if (arguments.back() == nullptr || !add_operands(body, instruction, 3, "uEE", arguments))
        return;
    const Block block = block_operands(body, instruction, block_at);
    if (block.function == nullptr)
        return;
    const size_t wanted = block.function->arg_size() - 1;
    const size_t given = instruction.operands.size() - std::min(sizes_at, instruction.operands.size());
    if (given != wanted)
        return body.refuse(instruction, "Invoke takes " + std::to_string(wanted) +
                                            " pointers to local memory, and there are " + std::to_string(given) +
                                            " sizes");
    Value* const sizes = local_sizes(body, instruction, sizes_at, given);
    if (sizes == nullptr)
        return;
    arguments.append({block.kernel, block.literal, block.bytes, block.alignment,
                      body.builder().getInt32(static_cast<uint32_t>(given)), sizes});
    body.define(instruction, body.call("__enqueue_kernel_spirv", body.builder().getInt32Ty(), arguments, Effect::any));
}

// Queries of a block. `before`: the operand in front of it; r a range, u a number, a space for none.
struct Query {
    spv::Op opcode;
    std::string_view name;
    char before;
};

constexpr std::array queries{
    Query{spv::OpGetKernelWorkGroupSize, "__get_kernel_work_group_size_impl", ' '},
    Query{spv::OpGetKernelPreferredWorkGroupSizeMultiple, "__get_kernel_preferred_work_group_size_multiple_impl", ' '},
    Query{spv::OpGetKernelNDrangeMaxSubGroupSize, "__get_kernel_max_sub_group_size_for_ndrange_impl", 'r'},
    Query{spv::OpGetKernelNDrangeSubGroupCount, "__get_kernel_sub_group_count_for_ndrange_impl", 'r'},
    Query{spv::OpGetKernelLocalSizeForSubgroupCount, "__get_kernel_local_size_for_sub_group_count_impl", 'u'},
    Query{spv::OpGetKernelMaxNumSubgroups, "__get_kernel_max_sub_group_count_impl", ' '},
};

void ask(Body& body, const Instruction& instruction, const Query& query) {
    llvm::SmallVector<Value*, 4> arguments;
    if (query.before == 'r') {
        arguments.push_back(range_in_memory(body, instruction, 0));
        if (arguments.back() == nullptr)
            return;
    } else if (query.before == 'u' && !add_operands(body, instruction, 0, "u", arguments)) {
        return;
    }
    const Block block = block_operands(body, instruction, arguments.size());
    if (block.function == nullptr)
        return;
    arguments.append({block.kernel, block.literal});
    body.define(instruction, body.call(std::string{query.name}, body.builder().getInt32Ty(), arguments, Effect::any));
}

}  // namespace

uint32_t block_of(const Instruction& instruction) {
    if (instruction.opcode == spv::OpEnqueueKernel)
        return instruction.operand(block_at);
    const auto* const query = std::ranges::find(queries, instruction.opcode, &Query::opcode);
    return query == queries.end() ? 0 : instruction.operand(query->before == ' ' ? 0 : 1);
}

bool emit_device_enqueue(Body& body, const Instruction& instruction) {
    if (instruction.opcode == spv::OpEnqueueKernel) {
        enqueue(body, instruction);
        return true;
    }
    if (instruction.opcode == spv::OpBuildNDRange) {
        build_range(body, instruction);
        return true;
    }
    if (const auto* const query = std::ranges::find(queries, instruction.opcode, &Query::opcode);
        query != queries.end()) {
        ask(body, instruction, *query);
        return true;
    }
    const auto* const found = std::ranges::find(enqueue_functions, instruction.opcode, &EnqueueFunction::opcode);
    if (found == enqueue_functions.end())
        return false;
    call_enqueue_function(body, instruction, *found);
    return true;
}

}  // namespace polder::compiler::spirv
