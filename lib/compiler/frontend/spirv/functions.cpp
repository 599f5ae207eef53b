// Splits the module into functions, rejects recursion, declares every function (kernels first, so that they get their exported
// names), then translates the bodies block by block.
#include "functions.h"

#include "body.h"
#include "imported_intrinsics.h"
#include "symbols.h"

#include <algorithm>
#include <llvm/IR/Constants.h>
#include <llvm/Support/MathExtras.h>
#include <map>
#include <set>

namespace polder::compiler::spirv {
namespace {

// The instructions from an OpFunction to its OpFunctionEnd.
struct FunctionCode {
    const Instruction* head = nullptr;
    std::vector<uint32_t> parameters;
    std::span<const Instruction> body;  // from the first OpLabel on; empty for a declaration
    llvm::Function* function = nullptr;
};

std::vector<FunctionCode> split_functions(const Binary& binary) {
    std::vector<FunctionCode> functions;
    const std::span<const Instruction> all{binary.instructions()};
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].opcode != spv::OpFunction)
            continue;
        FunctionCode code{.head = &all[i]};
        for (++i; i < all.size() && all[i].opcode != spv::OpLabel && all[i].opcode != spv::OpFunctionEnd; ++i)
            if (all[i].opcode == spv::OpFunctionParameter)
                code.parameters.push_back(all[i].result);
        const size_t begin = i;
        while (i < all.size() && all[i].opcode != spv::OpFunctionEnd)
            ++i;
        code.body = all.subspan(begin, i - begin);
        functions.push_back(std::move(code));
    }
    return functions;
}

// A function that calls itself, directly or through others; null when there is none. The search is not recursive, so that a
// malicious module cannot overflow the stack.
const FunctionCode* find_recursion(const std::vector<FunctionCode>& functions) {
    std::map<uint32_t, std::set<uint32_t>> callers;
    std::map<uint32_t, size_t> calls_left;
    for (const FunctionCode& code : functions) {
        std::set<uint32_t> callees;
        for (const Instruction& instruction : code.body)
            if (instruction.opcode == spv::OpFunctionCall)
                callees.insert(instruction.operand(0));
        calls_left[code.head->result] = callees.size();
        for (const uint32_t callee : callees)
            callers[callee].insert(code.head->result);
    }
    // Functions without calls are removed repeatedly; those that remain are part of a recursion, or call one.
    std::vector<uint32_t> done;
    for (const auto& [function, count] : calls_left)
        if (count == 0)
            done.push_back(function);
    while (!done.empty()) {
        const uint32_t function = done.back();
        done.pop_back();
        for (const uint32_t caller : callers[function])
            if (--calls_left[caller] == 0)
                done.push_back(caller);
    }
    for (const FunctionCode& code : functions)
        if (calls_left[code.head->result] != 0)
            return &code;
    return nullptr;
}

class Functions {
public:
    explicit Functions(Translation& translation)
        : translation_(translation), functions_(split_functions(translation.binary())),
          enqueues_(enqueues(translation.binary())), blocks_(blocks(translation.binary())) {}

    void run() {
        if (const FunctionCode* code = find_recursion(functions_))
            return translation_.refuse(*code->head, "the function calls itself, or a function that does");
        // Kernels first, so that they get exactly the names of their entry points.
        for (const EntryPoint& entry : translation_.annotations().entry_points())
            declare_kernel(entry);
        for (FunctionCode& code : functions_)
            if (code.function == nullptr && !translation_.failed() && !declare_intrinsic(code))
                declare(code, symbol_of(translation_, *code.head, "function"));
        for (const FunctionCode& code : functions_)
            if (!translation_.failed())
                define(code);
    }

private:
    // Whether the entry point is what a translator makes of a block of OpenCL C: it takes the address of the block's literal, which no
    // application can pass. OpEnqueueKernel names it, or a function that it calls.
    [[nodiscard]] bool is_block(const FunctionCode& code) {
        const std::vector<uint32_t>& parameters = translation_.types().get(code.head->operand(1)).members;
        return enqueues_ && !parameters.empty() &&
               translation_.types().get(parameters.front()).kind == spv::OpTypePointer &&
               translation_.types().get(parameters.front()).storage == spv::StorageClassGeneric;
    }

    void declare_kernel(const EntryPoint& entry) {
        for (FunctionCode& code : functions_) {
            if (code.head->result != entry.function || translation_.failed() || is_block(code))
                continue;
            if (!is_free_name(entry.name))
                return translation_.refuse(*code.head, "the name '" + entry.name + "' is reserved");
            if (code.function != nullptr)
                return translation_.refuse(*code.head, "the function is the entry point of several kernels");
            const bool is_invoked = blocks_.contains(entry.function);
            declare(code, is_invoked ? symbol_of(translation_, *code.head, "function")
                                     : Symbol{entry.name, llvm::GlobalValue::ExternalLinkage});
            if (code.function == nullptr || translation_.failed())
                return;
            llvm::Function& kernel = is_invoked ? kernel_that_calls(*code.function, entry.name) : *code.function;
            kernel.setCallingConv(llvm::CallingConv::SPIR_KERNEL);
            describe_kernel(translation_, *code.head, kernel, code.parameters);
        }
    }

    // For an entry point that is a block as well: kernels do not call kernels.
    llvm::Function& kernel_that_calls(llvm::Function& function, const std::string& name) {
        auto* const kernel = llvm::Function::Create(function.getFunctionType(), llvm::GlobalValue::ExternalLinkage,
                                                    name, translation_.module());
        kernel->copyAttributesFrom(&function);
        Builder builder(llvm::BasicBlock::Create(translation_.context(), "", kernel));
        llvm::SmallVector<llvm::Value*, 4> arguments;
        for (llvm::Argument& argument : kernel->args())
            arguments.push_back(&argument);
        llvm::CallInst* const call = builder.CreateCall(&function, arguments);
        call->setCallingConv(function.getCallingConv());
        call->setAttributes(function.getAttributes());
        builder.CreateRetVoid();
        return *kernel;
    }

    void declare(FunctionCode& code, const Symbol& symbol) {
        const uint32_t type_id = code.head->operand(1);
        auto* type = llvm::dyn_cast_or_null<llvm::FunctionType>(translation_.types().llvm(type_id));
        if (type == nullptr || type->getNumParams() != code.parameters.size())
            return translation_.refuse(*code.head, "the function's type is not that of its parameters");
        if (symbol.is_imported != code.body.empty())
            return translation_.refuse(*code.head, symbol.is_imported ? "the function is imported and has a body"
                                                                      : "the function has no body and is not imported");
        code.function = llvm::Function::Create(type, symbol.linkage, symbol.name, translation_.module());
        code.function->setCallingConv(llvm::CallingConv::SPIR_FUNC);
        code.function->addFnAttr(llvm::Attribute::Convergent);
        code.function->addFnAttr(llvm::Attribute::NoUnwind);
        add_control(*code.function, code.head->operand(0));
        translation_.define(code.head->result, type_id, code.function);
        for (unsigned i = 0; i < code.parameters.size(); ++i)
            declare_parameter(*code.head, *code.function->getArg(i), code.parameters[i],
                              translation_.types().get(type_id).members[i]);
    }

    // Returns whether the function is one of LLVM's, which the module imports.
    [[nodiscard]] bool declare_intrinsic(FunctionCode& code) {
        const auto linkage = translation_.annotations().linkage(code.head->result);
        const uint32_t type_id = code.head->operand(1);
        auto* type = llvm::dyn_cast_or_null<llvm::FunctionType>(translation_.types().llvm(type_id));
        if (!linkage || linkage->type != spv::LinkageTypeImport || !code.body.empty() || type == nullptr ||
            type->getNumParams() != code.parameters.size())
            return false;
        code.function = imported_intrinsic(translation_.module(), linkage->name, *type);
        if (code.function == nullptr)
            return false;
        translation_.define(code.head->result, type_id, code.function);
        return true;
    }

    static void add_control(llvm::Function& function, uint32_t control) {
        if ((control & spv::FunctionControlDontInlineMask) != 0)
            function.addFnAttr(llvm::Attribute::NoInline);
        else if ((control & spv::FunctionControlInlineMask) != 0)
            function.addFnAttr(llvm::Attribute::InlineHint);
        if ((control & spv::FunctionControlConstMask) != 0)
            function.setDoesNotAccessMemory();
        else if ((control & spv::FunctionControlPureMask) != 0)
            function.setOnlyReadsMemory();
    }

    void declare_parameter(const Instruction& head, llvm::Argument& argument, uint32_t id, uint32_t type) {
        const Annotations& annotations = translation_.annotations();
        translation_.define(id, type, &argument);
        const std::string name = annotations.name(id);
        if (!name.empty())
            argument.setName(name);
        const auto has = [&](spv::FunctionParameterAttribute attribute) {
            return annotations.has_function_attribute(id, attribute);
        };
        if (argument.getType()->isIntegerTy() && has(spv::FunctionParameterAttributeZext))
            argument.addAttr(llvm::Attribute::ZExt);
        if (argument.getType()->isIntegerTy() && has(spv::FunctionParameterAttributeSext))
            argument.addAttr(llvm::Attribute::SExt);
        if (argument.getType()->isPointerTy())
            add_pointer_attributes(head, argument, id, translation_.types().get(type));
    }

    void add_pointer_attributes(const Instruction& head, llvm::Argument& argument, uint32_t id, const Type& type) {
        const Annotations& annotations = translation_.annotations();
        llvm::LLVMContext& context = translation_.context();
        if (annotations.has_function_attribute(id, spv::FunctionParameterAttributeNoAlias))
            argument.addAttr(llvm::Attribute::NoAlias);
        llvm::Type* pointee = translation_.types().llvm(type.element);
        const bool is_sized = pointee != nullptr && pointee->isSized();
        const bool is_by_value = annotations.has_function_attribute(id, spv::FunctionParameterAttributeByVal);
        const bool is_result = annotations.has_function_attribute(id, spv::FunctionParameterAttributeSret);
        if ((is_by_value || is_result) && !is_sized)
            return translation_.refuse(head, "a parameter by value has no size");
        if (is_by_value)
            argument.addAttr(llvm::Attribute::getWithByValType(context, pointee));
        else if (is_result)
            argument.addAttr(llvm::Attribute::getWithStructRetType(context, pointee));
        const auto alignment = annotations.decoration(id, spv::DecorationAlignment);
        if (alignment && llvm::isPowerOf2_32(alignment->operand(0)) && alignment->operand(0) <= 4096)
            argument.addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(alignment->operand(0))));
        else if (is_by_value)
            argument.addAttr(llvm::Attribute::getWithAlignment(
                context, translation_.module().getDataLayout().getABITypeAlign(pointee)));
    }

    // A result may be used before its definition in the text, so the types of all results are recorded first.
    void define(const FunctionCode& code) {
        if (code.body.empty())
            return;
        for (const Instruction& instruction : code.body)
            if (instruction.result != 0 && instruction.type != 0)
                translation_.note_type(instruction);
        Body body(translation_, *code.function, contraction());
        for (const Instruction& instruction : code.body) {
            if (instruction.type != 0 && translation_.types().llvm(instruction.type) == nullptr)
                translation_.refuse(instruction, "the result's type is unknown");
            if (translation_.failed())
                return;
            body.emit(instruction);
        }
        translation_.finish_stand_ins(code.body.back());
    }

    [[nodiscard]] Body::Contraction contraction() const {
        for (const EntryPoint& entry : translation_.annotations().entry_points())
            if (translation_.annotations().execution_mode(entry.function, spv::ExecutionModeContractionOff))
                return Body::Contraction::forbidden;
        return Body::Contraction::allowed;
    }

    [[nodiscard]] static std::set<uint32_t> blocks(const Binary& binary) {
        std::set<uint32_t> functions;
        for (const Instruction& each : binary.instructions())
            functions.insert(block_of(each));
        return functions;
    }
    [[nodiscard]] static bool enqueues(const Binary& binary) {
        return std::ranges::any_of(binary.instructions(), [](const Instruction& each) {
            return each.opcode == spv::OpCapability && each.operand(0) == spv::CapabilityDeviceEnqueue;
        });
    }

    Translation& translation_;
    std::vector<FunctionCode> functions_;
    const bool enqueues_;
    const std::set<uint32_t> blocks_;  // ids
};

}  // namespace

void define_functions(Translation& translation) { Functions{translation}.run(); }

}  // namespace polder::compiler::spirv
