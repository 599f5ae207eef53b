// Conversions to floats and doubles that round towards zero, up or down: from the nearest number and one step where that lies on the wrong side.
// libclc compares with an argument that was converted back, from the integer type with corrections at its ends, and calls nextafter: up to five times
// as long. Numbers of which each fits into the result need no rounding and are libclc's, as are floats of 64-bit integers.
#include "common.h"

#define BODY "convert_modes.inc"
#include "widths.h"
