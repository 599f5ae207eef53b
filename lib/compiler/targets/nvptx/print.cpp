// For each call of printf: compute the record's size, reserve it in the ring, and store the arguments. The size field is written
// last, because the host treats a record without a size as unfinished.
#include "print.h"

#include "machine/nvptx.h"
#include "module/printf_lowering.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <polder/ptx_abi.h>

namespace polder::compiler {
namespace {

// Whether the conversion for each argument is %s.
std::vector<bool> strings_of(llvm::StringRef format) {
    std::vector<bool> strings;
    for (size_t at = format.find('%'); at != llvm::StringRef::npos; at = format.find('%', at + 1)) {
        at = format.find_first_not_of("-+ #0123456789.vhl", at + 1);
        if (at == llvm::StringRef::npos)
            break;
        if (format[at] != '%')
            strings.push_back(format[at] == 's');
    }
    return strings;
}

class PrintLowering {
public:
    PrintLowering(llvm::CallInst& call, llvm::StringRef format)
        : call_(call), module_(*call.getModule()), format_(format), strings_(strings_of(format)), builder_(&call) {}

    void run() {
        const std::vector<PackedArgument> arguments = pack_print_arguments(builder_, call_);
        arguments_bytes_ = arguments.empty() ? 0 : arguments.back().offset + arguments.back().bytes;
        format_bytes_ = llvm::alignTo(format_.size() + 1, slot_bytes);
        const uint64_t fixed_bytes = sizeof(PtxPrintRecord) + format_bytes_ + arguments_bytes_;
        llvm::Value* bytes = builder_.getInt64(fixed_bytes);
        std::vector<llvm::Value*> string_begins(arguments.size());
        for (size_t i = 0; i < arguments.size(); ++i)
            if (is_string(arguments, i)) {
                string_begins[i] = bytes;
                bytes = builder_.CreateAdd(bytes, string_bytes(arguments[i].value));
            }
        llvm::Value* const record = builder_.CreateCall(reserve(), {bytes});
        llvm::Value* const has_room = builder_.CreateIsNotNull(record);
        llvm::Instruction* const then = llvm::SplitBlockAndInsertIfThen(has_room, &call_, false);
        builder_.SetInsertPoint(then);
        write(record, arguments, string_begins);
        // Last, as the host takes a record without a size for one that was not finished.
        store(builder_.CreateTrunc(bytes, builder_.getInt32Ty()), record, offsetof(PtxPrintRecord, bytes));
        builder_.SetInsertPoint(&call_);
        call_.replaceAllUsesWith(builder_.CreateSelect(has_room, builder_.getInt32(0), builder_.getInt32(-1)));
        call_.eraseFromParent();
    }

private:
    [[nodiscard]] bool is_string(const std::vector<PackedArgument>& arguments, size_t i) const {
        return i < strings_.size() && strings_[i] && arguments[i].value->getType()->isPointerTy();
    }

    void write(llvm::Value* record, const std::vector<PackedArgument>& arguments,
               const std::vector<llvm::Value*>& string_begins) {
        store(builder_.getInt32(static_cast<uint32_t>(format_bytes_)), record, offsetof(PtxPrintRecord, format_bytes));
        store(builder_.getInt32(static_cast<uint32_t>(arguments_bytes_)), record,
              offsetof(PtxPrintRecord, arguments_bytes));
        uint64_t at = sizeof(PtxPrintRecord);
        std::string padded = format_.str();
        padded.resize(format_bytes_, '\0');
        for (uint64_t i = 0; i < format_bytes_; i += slot_bytes) {
            uint64_t word = 0;
            std::memcpy(&word, padded.data() + i, sizeof word);
            store(builder_.getInt64(word), record, at + i);
        }
        at += format_bytes_;
        for (size_t i = 0; i < arguments.size(); ++i) {
            llvm::Value* value = arguments[i].value;
            if (string_begins[i] != nullptr) {
                llvm::Value* const text = generic(value);
                builder_.CreateCall(
                    function("polder_print_string", builder_.getVoidTy(), {record->getType(), text->getType()}),
                    {builder_.CreateGEP(builder_.getInt8Ty(), record, string_begins[i]), text});
                value = builder_.CreateSelect(builder_.CreateIsNull(text), builder_.getInt64(0), string_begins[i]);
            }
            store(value, record, at + arguments[i].offset);
        }
    }

    llvm::Value* string_bytes(llvm::Value* text) {
        llvm::Value* const pointer = generic(text);
        return builder_.CreateCall(function("polder_print_string_bytes", builder_.getInt64Ty(), {pointer->getType()}),
                                   {pointer});
    }

    llvm::Value* generic(llvm::Value* pointer) {
        return builder_.CreateAddrSpaceCast(pointer, llvm::PointerType::get(module_.getContext(), 0));
    }

    llvm::FunctionCallee reserve() {
        return function("polder_print_reserve", llvm::PointerType::get(module_.getContext(), nvptx_global_space),
                        {builder_.getInt64Ty()});
    }

    llvm::FunctionCallee function(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters) {
        return module_.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false));
    }

    void store(llvm::Value* value, llvm::Value* record, uint64_t offset) {
        builder_.CreateAlignedStore(value, builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), record, offset),
                                    llvm::commonAlignment(llvm::Align(slot_bytes), offset));
    }

    llvm::CallInst& call_;
    llvm::Module& module_;
    llvm::StringRef format_;
    std::vector<bool> strings_;
    llvm::IRBuilder<> builder_;
    uint64_t format_bytes_ = 0;
    uint64_t arguments_bytes_ = 0;
};

}  // namespace

Result<bool> lower_print(llvm::Module& module) {
    llvm::Function* const function = module.getFunction("printf");
    if (function == nullptr || !function->isDeclaration())
        return false;
    bool prints = false;
    for (llvm::User* user : llvm::make_early_inc_range(function->users())) {
        auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
        if (call == nullptr || call->getCalledFunction() != function)
            continue;
        llvm::StringRef format;
        if (!llvm::getConstantStringInfo(call->getArgOperand(0)->stripPointerCasts(), format))
            return fail(Status::out_of_resources, "a format of printf is not a string literal");
        const std::string text = format.str();
        PrintLowering(*call, text).run();
        prints = true;
    }
    return prints;
}

}  // namespace polder::compiler
