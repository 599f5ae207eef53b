// TABLE[AT] for the elements of vectors of indices. Without a loop, which LLVM unrolls too late for passes that need the whole vector
// (targets/host/workgroup/vectorizer/analysis/vectors_of_table.h).
#pragma once

#define LOOKED_UP_(TABLE, AT) TABLE[AT]
#define LOOKED_UP_2(TABLE, AT) TABLE[(AT).s0], TABLE[(AT).s1]
#define LOOKED_UP_3(TABLE, AT) LOOKED_UP_2(TABLE, AT), TABLE[(AT).s2]
#define LOOKED_UP_4(TABLE, AT) LOOKED_UP_3(TABLE, AT), TABLE[(AT).s3]
#define LOOKED_UP_8(TABLE, AT) LOOKED_UP_4(TABLE, AT), LOOKED_UP_4(TABLE, (AT).s4567)
#define LOOKED_UP_16(TABLE, AT) LOOKED_UP_8(TABLE, AT), LOOKED_UP_8(TABLE, (AT).s89abcdef)
#define LOOKED_UP(TYPE, TABLE, AT) ((TYPE)(JOIN(LOOKED_UP_, WIDTH)(TABLE, AT)))
