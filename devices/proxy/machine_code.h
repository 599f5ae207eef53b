// Machine code that another implementation has made of a program: getting it, and making a program of it again.
//
// It is stored with the name of who made it: platform, device and their versions. Only the same implementation gets it back, because others
// may take it for their own and fail in any way. Any thread.
#pragma once

#include <proxy/foreign_context.h>
#include <string>
#include <string_view>

namespace polder::proxy {

// In the form of TargetCode::code.
[[nodiscard]] std::string named_machine_code(const ForeignContext& context, std::string_view bytes);
// Of a program that was built there; empty when the implementation gives none.
[[nodiscard]] std::string machine_code_of(const ForeignContext& context, cl_program program);
// A program, built, with a reference for the caller. Fails when another implementation made the code, or this one refuses it.
[[nodiscard]] Result<cl_program> program_of(const ForeignContext& context, std::string_view machine_code,
                                            const std::string& options);

}  // namespace polder::proxy
