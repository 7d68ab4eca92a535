/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Rewrites superblocks so that every access leaves its address in the stream.
 *
 * Problem. A call per access costs some twenty times the access. Idea. What an access is (instruction,
 * size, direction) is known here, when its superblock is translated: it is sent once, as a block
 * definition. What is left for run time is the address: one inline store an access, with the cursor
 * held in a temporary, one compare a superblock for room, and one header word written when the
 * superblock is left. A superblock is left at its end or at any of its side exits; before each exit the
 * header is written with the count so far and the cursor is moved, so the analyzer reads a prefix of
 * the definition. A memory fault inside a superblock loses the accesses of that superblock before the
 * fault, no more.
 *
 * Calls and returns end superblocks; with REVISIT_WANT_CALLS they append ENTER and LEAVE with the stack
 * pointer. Functions that matter by name (malloc, region marks, --function) are recognised by symbol
 * when the superblock at their entry is translated: the program's own allocator runs, nothing is
 * preloaded.
 */
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "tool.h"

typedef struct {
    IRSB* out;
    IRTemp cursor; /* next at the superblock's start */
    UInt count;    /* accesses so far */
    UInt written;  /* the count the header in memory says */
    ULong block;
    Addr begin;
    UInt element; /* of the string instruction that comes back to the superblock's start; 0 = none */
    const VexGuestLayout* layout;
    ULong access[SUPERBLOCK_ACCESSES];
    Addr where[SUPERBLOCK_ACCESSES];
    IRExpr* address[SUPERBLOCK_ACCESSES];
} Superblock;

static Superblock sb; /* translation is serial */
static ULong blocks;

static void append(IRStmt* st) {
    addStmtToIRSB(sb.out, st);
}

static IRExpr* temp(IRType type, IRExpr* value) {
    IRTemp t = newIRTemp(sb.out->tyenv, type);
    append(IRStmt_WrTmp(t, value));
    return IRExpr_RdTmp(t);
}

static IRExpr* load_word(void* from) {
    return temp(Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, mkIRExpr_HWord((HWord)from)));
}

/* Stores at cursor + words. */
static void store_at(UInt words, IRExpr* value) {
    IRExpr* at = IRExpr_RdTmp(sb.cursor);
    if (words) at = temp(Ity_I64, IRExpr_Binop(Iop_Add64, at, mkIRExpr_HWord(words * 8)));
    append(IRStmt_Store(Iend_LE, at, value));
}

static void move_cursor(UInt words) {
    IRExpr* to =
        temp(Ity_I64, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(sb.cursor), mkIRExpr_HWord(words * 8)));
    append(IRStmt_Store(Iend_LE, mkIRExpr_HWord((HWord)&RV_(cursor).next), to));
}

/* What was appended since the superblock's start becomes part of the stream. */
static void commit(void) {
    if (sb.count == sb.written) return;
    store_at(0, IRExpr_Const(IRConst_U64(REVISIT_BLOCK(sb.block, sb.count))));
    move_cursor(1 + sb.count);
    sb.written = sb.count;
}

static void call(const HChar* name, void* function, IRExpr** arguments, IRExpr* guard) {
    IRDirty* d = unsafeIRDirty_0_N(0, name, VG_(fnptr_to_fnentry)(function), arguments);
    if (guard) d->guard = guard;
    append(IRStmt_Dirty(d));
}

static IRExpr* guest_word(Int offset) {
    return temp(Ity_I64, IRExpr_Get(offset, Ity_I64));
}

static void access(Addr where, IRExpr* address, UInt size, UInt flags, IRExpr* guard) {
    if (sb.count == SUPERBLOCK_ACCESSES) return; /* sixty instructions do not make as many */
    if (guard && !(guard->tag == Iex_Const && guard->Iex.Const.con->Ico.U1)) {
        flags |= REVISIT_GUARDED;
        address = temp(Ity_I64, IRExpr_ITE(guard, address, mkIRExpr_HWord(REVISIT_NO_ACCESS)));
    }
    store_at(1 + sb.count, address);
    sb.access[sb.count] = REVISIT_ACCESS(size, flags);
    sb.where[sb.count] = where;
    sb.address[sb.count] = address;
    sb.count++;
}

/* rep movs and rep stos of elements below 8 bytes: the size of one; 0 for all others. */
static UInt repeated_element(Addr where, Addr next_where) {
#if defined(VGA_amd64)
    const UChar *at = (const UChar*)where, *end = (const UChar*)next_where;
    Bool repeats = False, halved = False, wide = False;
    UInt operation;
    for (; at < end && (*at == 0xf2 || *at == 0xf3 || *at == 0x66 || *at == 0x67); at++) {
        repeats |= *at == 0xf2 || *at == 0xf3;
        halved |= *at == 0x66;
    }
    if (at < end && (*at & 0xf0) == 0x40) wide = (*at++ & 8) != 0;
    if (!repeats || at >= end) return 0;
    operation = *at & 0xfe;
    if (operation != 0xa4 && operation != 0xaa) return 0;
    return (*at & 1) == 0 ? 1 : wide ? 0 : halved ? 2 : 4;
#else
    return 0;
#endif
}

/* Processors move such strings by words and more, valgrind by elements, in a superblock that comes back
   to itself. There only the element that a word begins with is recorded, as the word. */
static void string_access(Addr where, IRExpr* address, UInt element, UInt flags) {
    const UInt word = sizeof(ULong);
    IRExpr* within = temp(Ity_I64, IRExpr_Binop(Iop_And64, address, mkIRExpr_HWord(word - 1)));
    access(where, temp(Ity_I64, IRExpr_Binop(Iop_Sub64, address, within)), word, flags,
           temp(Ity_I1, IRExpr_Binop(Iop_CmpLT64U, within, mkIRExpr_HWord(element))));
}

/* A locked instruction is a load and a compare-and-swap in the intermediate code, and one access to us.
 */
static void compare_and_swap(Addr where, IRCAS* cas) {
    UInt size = sizeofIRType(typeOfIRExpr(sb.out->tyenv, cas->dataLo)) * (cas->dataHi ? 2 : 1);
    UInt last = sb.count - 1;
    if (sb.count && sb.count > sb.written && sb.where[last] == where &&
        eqIRAtom(sb.address[last], cas->addr)) {
        sb.access[last] = REVISIT_ACCESS(size, REVISIT_WRITE | REVISIT_ATOMIC);
        return;
    }
    access(where, cas->addr, size, REVISIT_WRITE | REVISIT_ATOMIC, NULL);
}

static void helper(Addr where, IRDirty* d) {
    if (d->mFx == Ifx_Read || d->mFx == Ifx_Modify) access(where, d->mAddr, d->mSize, 0, d->guard);
    if (d->mFx == Ifx_Write || d->mFx == Ifx_Modify)
        access(where, d->mAddr, d->mSize, REVISIT_WRITE, d->guard);
}

static void statement(IRStmt* st, Addr* where, Addr* next_where) {
    IRTypeEnv* types = sb.out->tyenv;
    switch (st->tag) {
        case Ist_IMark:
            *where = st->Ist.IMark.addr;
            *next_where = *where + st->Ist.IMark.len;
            sb.element = *where == sb.begin ? repeated_element(*where, *next_where) : 0;
            break;
        case Ist_WrTmp: {
            IRExpr* e = st->Ist.WrTmp.data;
            if (e->tag == Iex_Load && sb.element)
                string_access(*where, e->Iex.Load.addr, sb.element, 0);
            else if (e->tag == Iex_Load)
                access(*where, e->Iex.Load.addr, sizeofIRType(e->Iex.Load.ty), 0, NULL);
            break;
        }
        case Ist_Store:
            if (sb.element)
                string_access(*where, st->Ist.Store.addr, sb.element, REVISIT_WRITE);
            else
                access(*where, st->Ist.Store.addr,
                       sizeofIRType(typeOfIRExpr(types, st->Ist.Store.data)), REVISIT_WRITE, NULL);
            break;
        case Ist_LoadG: {
            IRLoadG* g = st->Ist.LoadG.details;
            IRType to, from;
            typeOfIRLoadGOp(g->cvt, &to, &from);
            access(*where, g->addr, sizeofIRType(from), 0, g->guard);
            break;
        }
        case Ist_StoreG: {
            IRStoreG* g = st->Ist.StoreG.details;
            access(*where, g->addr, sizeofIRType(typeOfIRExpr(types, g->data)), REVISIT_WRITE,
                   g->guard);
            break;
        }
        case Ist_CAS:
            compare_and_swap(*where, st->Ist.CAS.details);
            break;
        case Ist_LLSC:
            if (st->Ist.LLSC.storedata)
                access(*where, st->Ist.LLSC.addr,
                       sizeofIRType(typeOfIRExpr(types, st->Ist.LLSC.storedata)),
                       REVISIT_WRITE | REVISIT_ATOMIC, NULL);
            else
                access(*where, st->Ist.LLSC.addr,
                       sizeofIRType(typeOfIRTemp(types, st->Ist.LLSC.result)), REVISIT_ATOMIC, NULL);
            break;
        case Ist_Dirty:
            helper(*where, st->Ist.Dirty.details);
            break;
        case Ist_Exit:
            commit();
            break;
        default:
            break;
    }
    append(st);
}

/* VEX calls every unconditional branch of arm64 a call; the instruction shows which. */
static Bool is_call(IRSB* in, Addr where) {
    if (in->jumpkind != Ijk_Call) return False;
#if defined(VGA_arm64)
    UInt instruction = *(UInt*)where;
    return (instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfffffc1f) == 0xd63f0000;
#else
    return True;
#endif
}

/* At a call: ENTER with the stack pointer that the return will restore. At a return: LEAVE, and the
   result of a function that is waited for. */
static void calls_and_returns(IRSB* in, Addr where) {
    Bool wants_calls = RV_(want)() & REVISIT_WANT_CALLS;
    UInt at = sb.count ? 1 + sb.count : 0;
    IRExpr* sp;
    if (wants_calls && is_call(in, where)) {
        sp = guest_word(sb.layout->offset_SP);
        if (CALL_PUSHES) sp = temp(Ity_I64, IRExpr_Binop(Iop_Add64, sp, mkIRExpr_HWord(CALL_PUSHES)));
        store_at(at, IRExpr_Const(IRConst_U64(REVISIT_RECORD(REVISIT_ENTER, where))));
        store_at(at + 1, sp);
        move_cursor(at + 2);
    } else if (in->jumpkind == Ijk_Ret) {
        sp = guest_word(sb.layout->offset_SP);
        if (wants_calls) {
            store_at(at,
                     temp(Ity_I64,
                          IRExpr_Binop(Iop_Or64, sp,
                                       IRExpr_Const(IRConst_U64(REVISIT_RECORD(REVISIT_LEAVE, 0))))));
            move_cursor(at + 1);
        }
        call("function_returned", RV_(function_returned),
             mkIRExprVec_2(guest_word(GUEST_RESULT), in->next),
             temp(Ity_I1, IRExpr_Binop(Iop_CmpEQ64, sp, load_word(&RV_(awaited_return)))));
    }
}

/* A jump has come back to here, or setjmp has returned: calls made from this depth are over. */
static void close_frames_below(void) {
    IRTemp moved = newIRTemp(sb.out->tyenv, Ity_I64);
    store_at(0,
             temp(Ity_I64, IRExpr_Binop(Iop_Or64, guest_word(sb.layout->offset_SP),
                                        IRExpr_Const(IRConst_U64(REVISIT_RECORD(REVISIT_LEAVE, 0))))));
    move_cursor(1);
    append(IRStmt_WrTmp(
        moved, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(sb.cursor), mkIRExpr_HWord(sizeof(ULong)))));
    sb.cursor = moved;
}

static void define_block(void) {
    UInt i;
    RV_(need)(2 + 2 * sb.count);
    *RV_(cursor).next++ = REVISIT_RECORD(REVISIT_DEFINE_BLOCK, sb.count);
    *RV_(cursor).next++ = sb.block;
    for (i = 0; i < sb.count; i++) {
        *RV_(cursor).next++ = sb.access[i];
        *RV_(cursor).next++ = sb.where[i];
    }
}

static Bool leaves_nothing(IRSB* in) {
    Int i;
    if (in->jumpkind == Ijk_Ret || (in->jumpkind == Ijk_Call && (RV_(want)() & REVISIT_WANT_CALLS)))
        return False;
    for (i = 0; i < in->stmts_used; i++) {
        IRStmt* st = in->stmts[i];
        switch (st->tag) {
            case Ist_WrTmp:
                if (st->Ist.WrTmp.data->tag == Iex_Load) return False;
                break;
            case Ist_Dirty:
                if (st->Ist.Dirty.details->mFx != Ifx_None) return False;
                break;
            case Ist_Store:
            case Ist_LoadG:
            case Ist_StoreG:
            case Ist_CAS:
            case Ist_LLSC:
                return False;
            default:
                break;
        }
    }
    return True;
}

IRSB* RV_(instrument)(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                      const VexGuestExtents* extents, const VexArchInfo* arch, IRType guest_word_type,
                      IRType host_word_type) {
    Int i = 0;
    Addr where = 0, next_where = 0;
    UInt kind = RV_(function_kind)(closure->readdr);
    Bool after_setjmp = (RV_(want)() & REVISIT_WANT_CALLS) && RV_(after_setjmp)(closure->readdr);
    if (kind == FUNCTION_NONE && !after_setjmp && leaves_nothing(in)) return in;

    sb.out = deepCopyIRSBExceptStmts(in);
    sb.layout = layout;
    sb.count = sb.written = 0;
    sb.begin = closure->readdr;
    sb.element = 0;
    sb.block = blocks++;
    while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark) append(in->stmts[i++]);

    if (kind != FUNCTION_NONE) {
        IRExpr* sp = guest_word(layout->offset_SP);
#if defined(VGA_arm64)
        IRExpr* link = guest_word(GUEST_LINK);
#else
        IRExpr* link = temp(Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, sp));
#endif
        call("function_entered", RV_(function_entered),
             mkIRExprVec_6(mkIRExpr_HWord(kind), guest_word(GUEST_ARGUMENT_0),
                           guest_word(GUEST_ARGUMENT_1), guest_word(GUEST_ARGUMENT_2), sp, link),
             NULL);
    }
    call("hand_over", RV_(hand_over), mkIRExprVec_0(),
         temp(Ity_I1,
              IRExpr_Binop(Iop_CmpLT64U, load_word(&RV_(cursor).limit), load_word(&RV_(cursor).next))));
    sb.cursor = newIRTemp(sb.out->tyenv, Ity_I64);
    append(IRStmt_WrTmp(sb.cursor,
                        IRExpr_Load(Iend_LE, Ity_I64, mkIRExpr_HWord((HWord)&RV_(cursor).next))));

    if (after_setjmp) close_frames_below();
    for (; i < in->stmts_used; i++) statement(in->stmts[i], &where, &next_where);
    commit();
    calls_and_returns(in, where);
    if (sb.count) define_block();
    return sb.out;
}
