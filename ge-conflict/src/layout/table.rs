//! Which pairs of attributes go together: a table that covers every pair exactly once, checked at compile time.

use super::attrs::{AnchorAttr, AttrSet};
use AnchorAttr as A;

/// What becomes of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// They always go together.
    Free,
    /// They never do.
    Absolute,
    /// It depends.
    Check(Checker),
}

/// The 22 checkers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Checker {
    CiCi = 1,
    CoCi,
    CoCo,
    ContinuousRts,
    UserInContinuous,
    UserInUnrefreshOut,
    UserInRtsOut,
    UserOutUnrefreshOut,
    UserOutUnrefreshIn,
    UserOutImmutable,
    UserOutContinuousIn,
    ImmutableRtsOut,
    ImmutableNpci,
    ImmutableContinuousOut,
    NpciNpci,
    NpciNpco,
    NpcoNpco,
    RtsInRtsIn,
    RtsInRtsOut,
    RtsOutRtsOut,
    UnrefreshIn,
    UnrefreshOut,
}

impl Checker {
    /// Looks at the whole class of anchors once, not at each pair.
    pub const fn per_symbol(self) -> bool {
        matches!(
            self,
            Checker::CiCi | Checker::CoCo | Checker::NpciNpci | Checker::NpcoNpco
        )
    }

    /// What it looks for.
    pub const fn words(self) -> &'static str {
        match self {
            Checker::CiCi => {
                "no memory may be part of two rows of inputs that must each lie one after the other"
            }
            Checker::CoCi => {
                "a row of outputs and a row of inputs that both must lie one after the other have to be in step"
            }
            Checker::CoCo | Checker::NpcoNpco => {
                "no memory may be part of two rows of outputs that must each lie one after the other"
            }
            Checker::ContinuousRts => {
                "what must lie in a row with its neighbours can't lie in special memory unless they do, too"
            }
            Checker::UserInContinuous => {
                "the caller's input buffer lies where the caller puts it, so not in a row with other memory"
            }
            Checker::UserInUnrefreshOut => {
                "the caller may pass another input buffer in each run, and this operator can't follow"
            }
            Checker::UserInRtsOut => "the caller's input buffer does not lie in special memory",
            Checker::UserOutUnrefreshOut | Checker::UserOutUnrefreshIn => {
                "the caller may ask for a result at another address in each run, and this operator can't follow"
            }
            Checker::UserOutImmutable => {
                "a constant has its own place, so the caller's result buffer can't be it"
            }
            Checker::UserOutContinuousIn => {
                "the caller's result buffer lies where the caller puts it, so not in a row with other memory"
            }
            Checker::ImmutableRtsOut => "a constant or variable does not lie in special memory",
            Checker::ImmutableNpci | Checker::ImmutableContinuousOut => {
                "a constant or variable has its own place, so it can't lie in a row with other memory"
            }
            Checker::NpciNpci => {
                "two rows of inputs without a gap overlap in a way that one row can't hold"
            }
            Checker::NpciNpco => {
                "a row of inputs without a gap and a row of outputs without a gap can be one memory only if the one is the other"
            }
            Checker::RtsInRtsIn | Checker::RtsInRtsOut | Checker::RtsOutRtsOut => {
                "two kinds of special memory can't be one piece of memory"
            }
            Checker::UnrefreshIn | Checker::UnrefreshOut => {
                "addresses of this graph may change between runs, and this operator can't follow"
            }
        }
    }

    /// What a conflict that it finds is, in a few words.
    pub const fn title(self) -> &'static str {
        match self {
            Checker::CiCi | Checker::NpciNpci => {
                "two rows of inputs have memory in common and can't both lie as they must"
            }
            Checker::CoCo | Checker::NpcoNpco => {
                "two rows of outputs have memory in common and can't both lie as they must"
            }
            Checker::CoCi | Checker::NpciNpco => {
                "a row of outputs and a row of inputs have memory in common and can't both lie as they must"
            }
            Checker::ContinuousRts => {
                "one piece of memory would have to lie in a row of ordinary memory and in special memory"
            }
            Checker::UserInContinuous | Checker::UserOutContinuousIn => {
                "a buffer of the caller would have to be part of a row"
            }
            Checker::UserInUnrefreshOut
            | Checker::UserOutUnrefreshOut
            | Checker::UserOutUnrefreshIn => {
                "the caller may change the address of a buffer, and an operator can't follow"
            }
            Checker::UserInRtsOut => "a buffer of the caller would have to be special memory",
            Checker::UserOutImmutable => "a constant would have to be the caller's result buffer",
            Checker::ImmutableRtsOut => "a constant or variable would have to be special memory",
            Checker::ImmutableNpci | Checker::ImmutableContinuousOut => {
                "a constant or variable would have to be part of a row"
            }
            Checker::RtsInRtsIn | Checker::RtsInRtsOut | Checker::RtsOutRtsOut => {
                "one piece of memory would have to be of two kinds of special memory"
            }
            Checker::UnrefreshIn | Checker::UnrefreshOut => {
                "memory may move between runs, and an operator can't follow"
            }
        }
    }

    /// The design's name.
    pub fn name(self) -> &'static str {
        match self {
            Checker::CiCi => "continuous_input_and_continuous_input",
            Checker::CoCi => "continuous_output_and_continuous_input",
            Checker::CoCo => "continuous_out_and_continuous_out",
            Checker::ContinuousRts => "continuous_in_out_and_rts_special_mem_in_out",
            Checker::UserInContinuous => "user_in_and_continuous_in_out",
            Checker::UserInUnrefreshOut => "user_in_and_unrefresh_out",
            Checker::UserInRtsOut => "user_in_and_rts_special_out",
            Checker::UserOutUnrefreshOut => "user_out_and_unrefresh_out",
            Checker::UserOutUnrefreshIn => "user_out_and_unrefresh_in",
            Checker::UserOutImmutable => "user_out_and_immutable_out",
            Checker::UserOutContinuousIn => "user_out_and_continuous_input",
            Checker::ImmutableRtsOut => "immutable_out_and_rts_special_out",
            Checker::ImmutableNpci => "immutable_out_and_nopadding_continuous_in",
            Checker::ImmutableContinuousOut => "immutable_out_and_continuous_out",
            Checker::NpciNpci => "nopadding_continuous_input_and_nopadding_continuous_input",
            Checker::NpciNpco => "nopadding_continuous_input_and_nopadding_continuous_out",
            Checker::NpcoNpco => "nopadding_continuous_out_and_nopadding_continuous_out",
            Checker::RtsInRtsIn => "rts_special_in_and_rts_special_in",
            Checker::RtsInRtsOut => "rts_special_in_and_rts_special_out",
            Checker::RtsOutRtsOut => "rts_special_out_and_rts_special_out",
            Checker::UnrefreshIn => "unrefresh_in",
            Checker::UnrefreshOut => "unrefresh_out",
        }
    }
}

type Pairs = &'static [(A, A)];

/// Pairs that the design calls free of conflict; `Reference` goes with everything.
const NO_CONFLICT: Pairs = &[
    (A::RtsIn, A::NormalOut),
    (A::UserOut, A::UserOut),
    (A::UserIn, A::UserOut),
    (A::Reference, A::UserIn),
    (A::Reference, A::UserOut),
    (A::Reference, A::Immutable),
    (A::Reference, A::UnrefreshIn),
    (A::Reference, A::UnrefreshOut),
    (A::Reference, A::Ci),
    (A::Reference, A::Co),
    (A::Reference, A::Npci),
    (A::Reference, A::Npco),
    (A::Reference, A::RtsIn),
    (A::Reference, A::RtsOut),
    (A::Reference, A::Reference),
    (A::Reference, A::NormalIn),
    (A::Reference, A::NormalOut),
];

/// Pairs for which nobody registered a checker: no conflict either. Listed, so that a forgotten pair does not pass for one.
const UNREGISTERED: Pairs = &[
    (A::UserIn, A::UserIn),
    (A::UserIn, A::Immutable),
    (A::UserIn, A::NormalIn),
    (A::UserIn, A::NormalOut),
    (A::UserOut, A::NormalIn),
    (A::UserOut, A::NormalOut),
    (A::Immutable, A::Immutable),
    (A::Immutable, A::NormalIn),
    (A::Immutable, A::NormalOut),
    (A::Ci, A::NormalIn),
    (A::Ci, A::NormalOut),
    (A::Co, A::NormalIn),
    (A::Co, A::NormalOut),
    (A::Npci, A::NormalIn),
    (A::Npci, A::NormalOut),
    (A::Npco, A::NormalIn),
    (A::Npco, A::NormalOut),
    (A::RtsIn, A::NormalIn),
    (A::RtsOut, A::NormalIn),
    (A::RtsOut, A::NormalOut),
    (A::NormalIn, A::NormalIn),
    (A::NormalIn, A::NormalOut),
    (A::NormalOut, A::NormalOut),
];

/// Pairs that never go together.
const ABSOLUTE: Pairs = &[
    (A::UserIn, A::UnrefreshIn),
    (A::UserIn, A::RtsIn),
    (A::UserOut, A::RtsIn),
    (A::UserOut, A::RtsOut),
    (A::UserOut, A::Co),
    (A::UserOut, A::Npco),
    (A::Immutable, A::RtsIn),
    (A::Immutable, A::Ci),
    (A::Ci, A::Npco),
    (A::Co, A::Npci),
];

/// The registrations.
const REGISTERED: &[(Checker, Pairs)] = &[
    (Checker::CiCi, &[(A::Ci, A::Ci), (A::Ci, A::Npci)]),
    (Checker::CoCi, &[(A::Co, A::Ci)]),
    (Checker::CoCo, &[(A::Co, A::Co), (A::Co, A::Npco)]),
    (
        Checker::ContinuousRts,
        &[
            (A::Ci, A::RtsIn),
            (A::Ci, A::RtsOut),
            (A::Co, A::RtsIn),
            (A::Co, A::RtsOut),
            (A::Npci, A::RtsIn),
            (A::Npci, A::RtsOut),
            (A::Npco, A::RtsIn),
            (A::Npco, A::RtsOut),
        ],
    ),
    (
        Checker::UserInContinuous,
        &[
            (A::UserIn, A::Ci),
            (A::UserIn, A::Co),
            (A::UserIn, A::Npci),
            (A::UserIn, A::Npco),
        ],
    ),
    (Checker::UserInUnrefreshOut, &[(A::UserIn, A::UnrefreshOut)]),
    (Checker::UserInRtsOut, &[(A::UserIn, A::RtsOut)]),
    (
        Checker::UserOutUnrefreshOut,
        &[(A::UserOut, A::UnrefreshOut)],
    ),
    (Checker::UserOutUnrefreshIn, &[(A::UserOut, A::UnrefreshIn)]),
    (Checker::UserOutImmutable, &[(A::UserOut, A::Immutable)]),
    (
        Checker::UserOutContinuousIn,
        &[(A::UserOut, A::Ci), (A::UserOut, A::Npci)],
    ),
    (Checker::ImmutableRtsOut, &[(A::Immutable, A::RtsOut)]),
    (Checker::ImmutableNpci, &[(A::Immutable, A::Npci)]),
    (
        Checker::ImmutableContinuousOut,
        &[(A::Immutable, A::Co), (A::Immutable, A::Npco)],
    ),
    (Checker::NpciNpci, &[(A::Npci, A::Npci)]),
    (Checker::NpciNpco, &[(A::Npci, A::Npco)]),
    (Checker::NpcoNpco, &[(A::Npco, A::Npco)]),
    (Checker::RtsInRtsIn, &[(A::RtsIn, A::RtsIn)]),
    (Checker::RtsInRtsOut, &[(A::RtsIn, A::RtsOut)]),
    (Checker::RtsOutRtsOut, &[(A::RtsOut, A::RtsOut)]),
    (
        Checker::UnrefreshIn,
        &[
            (A::UnrefreshIn, A::Immutable),
            (A::UnrefreshIn, A::UnrefreshIn),
            (A::UnrefreshIn, A::UnrefreshOut),
            (A::UnrefreshIn, A::Ci),
            (A::UnrefreshIn, A::Co),
            (A::UnrefreshIn, A::Npci),
            (A::UnrefreshIn, A::Npco),
            (A::UnrefreshIn, A::RtsIn),
            (A::UnrefreshIn, A::RtsOut),
            (A::UnrefreshIn, A::NormalIn),
            (A::UnrefreshIn, A::NormalOut),
        ],
    ),
    (
        Checker::UnrefreshOut,
        &[
            (A::UnrefreshOut, A::Immutable),
            (A::UnrefreshOut, A::UnrefreshOut),
            (A::UnrefreshOut, A::Ci),
            (A::UnrefreshOut, A::Co),
            (A::UnrefreshOut, A::Npci),
            (A::UnrefreshOut, A::Npco),
            (A::UnrefreshOut, A::RtsIn),
            (A::UnrefreshOut, A::RtsOut),
            (A::UnrefreshOut, A::NormalIn),
            (A::UnrefreshOut, A::NormalOut),
        ],
    ),
];

type Table = [[Option<Entry>; A::COUNT]; A::COUNT];

const fn register(mut table: Table, pairs: Pairs, entry: Entry) -> Table {
    let mut i = 0;
    while i < pairs.len() {
        let (a, b) = (pairs[i].0 as usize, pairs[i].1 as usize);
        assert!(
            table[a][b].is_none(),
            "a pair of anchor attributes is registered twice"
        );
        table[a][b] = Some(entry);
        table[b][a] = Some(entry);
        i += 1;
    }
    table
}

const fn build() -> [[Entry; A::COUNT]; A::COUNT] {
    let mut table: Table = [[None; A::COUNT]; A::COUNT];
    table = register(table, NO_CONFLICT, Entry::Free);
    table = register(table, UNREGISTERED, Entry::Free);
    table = register(table, ABSOLUTE, Entry::Absolute);
    let mut i = 0;
    while i < REGISTERED.len() {
        assert!(
            REGISTERED[i].0 as usize == i + 1,
            "the checkers are not registered once each, in order"
        );
        table = register(table, REGISTERED[i].1, Entry::Check(REGISTERED[i].0));
        i += 1;
    }
    assert!(REGISTERED.len() == 22, "there are 22 checkers");
    let mut full = [[Entry::Free; A::COUNT]; A::COUNT];
    let mut a = 0;
    while a < A::COUNT {
        let mut b = 0;
        while b < A::COUNT {
            match table[a][b] {
                Some(e) => full[a][b] = e,
                None => panic!("a pair of anchor attributes is registered nowhere"),
            }
            b += 1;
        }
        a += 1;
    }
    full
}

/// The table. A pair that is registered twice or not at all does not compile.
const TABLE: [[Entry; A::COUNT]; A::COUNT] = build();

/// By attribute: those it does not always go with.
const RIVALS: [u16; A::COUNT] = {
    let mut rivals = [0u16; A::COUNT];
    let mut a = 0;
    while a < A::COUNT {
        let mut b = 0;
        while b < A::COUNT {
            if !matches!(TABLE[a][b], Entry::Free) {
                rivals[a] |= 1 << b;
            }
            b += 1;
        }
        a += 1;
    }
    rivals
};

/// Why a pair of the table's absolute part never goes together.
pub fn absolute_words(a: AnchorAttr, b: AnchorAttr) -> &'static str {
    let has = |x| a == x || b == x;
    let special = has(A::RtsIn) || has(A::RtsOut);
    if has(A::UserIn) {
        if special {
            return Checker::UserInRtsOut.words();
        }
        Checker::UserInUnrefreshOut.words()
    } else if has(A::UserOut) {
        if special {
            return "the caller's result buffer does not lie in special memory";
        }
        Checker::UserOutContinuousIn.words()
    } else if has(A::Immutable) {
        if special {
            return Checker::ImmutableRtsOut.words();
        }
        Checker::ImmutableNpci.words()
    } else {
        "a row with gaps for alignment and a row without a gap can't be one row"
    }
}

/// What a conflict of such a pair is, in a few words.
pub fn absolute_title(a: AnchorAttr, b: AnchorAttr) -> &'static str {
    let has = |x| a == x || b == x;
    let special = has(A::RtsIn) || has(A::RtsOut);
    if has(A::UserIn) || has(A::UserOut) {
        if special {
            return Checker::UserInRtsOut.title();
        }
        if has(A::UserIn) {
            return Checker::UserInUnrefreshOut.title();
        }
        Checker::UserOutContinuousIn.title()
    } else if has(A::Immutable) {
        if special {
            return Checker::ImmutableRtsOut.title();
        }
        Checker::ImmutableNpci.title()
    } else {
        Checker::CoCi.title()
    }
}

/// What becomes of a pair.
pub fn entry(a: AnchorAttr, b: AnchorAttr) -> Entry {
    TABLE[a as usize][b as usize]
}

/// The attributes that some attribute of `set` does not always go with.
pub fn rivals(set: AttrSet) -> AttrSet {
    AttrSet(set.iter().fold(0, |r, a| r | RIVALS[a as usize]))
}
