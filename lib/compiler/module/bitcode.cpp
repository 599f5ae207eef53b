#include "bitcode.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler {

std::string write_bitcode(const llvm::Module& module) {
    std::string bytes;
    llvm::raw_string_ostream stream(bytes);
    llvm::WriteBitcodeToFile(module, stream);
    return bytes;
}

Result<std::unique_ptr<llvm::Module>> read_bitcode(std::string_view bytes, llvm::LLVMContext& context,
                                                   BitcodeReading reading) {
    const llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()), "program");
    auto module = reading == BitcodeReading::lazy ? llvm::getLazyBitcodeModule(buffer, context)
                                                  : llvm::parseBitcodeFile(buffer, context);
    if (!module)
        return fail(Status::invalid_binary, llvm::toString(module.takeError()));
    return std::move(*module);
}

} // namespace polder::compiler
