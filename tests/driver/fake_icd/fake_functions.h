// How the sources of the fake ICD fill the table of functions.
#pragma once

#include "fake_objects.h"

void add_program_functions(cl_icd_dispatch& table);
void add_command_functions(cl_icd_dispatch& table);
