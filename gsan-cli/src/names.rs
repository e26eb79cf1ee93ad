//! The words that scenario files, JSON and SARIF use for the report model's enums: one table each.

use gsan_host::report::{Access, Order, Outcome, RaceClass, RaceKind, Scope};

/// Looks a value's word up, or a word's value.
pub trait Named: Sized + Copy + PartialEq + 'static {
    /// Every value with its word.
    const TABLE: &'static [(&'static str, Self)];

    /// The word; `"unknown"` for a value that a later version of the model may add.
    fn word(self) -> &'static str {
        Self::TABLE
            .iter()
            .find(|(_, v)| *v == self)
            .map_or("unknown", |(w, _)| w)
    }

    /// The value of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::TABLE
            .iter()
            .find(|(w, _)| *w == word)
            .map(|(_, v)| *v)
    }

    /// The words, for messages.
    fn words() -> String {
        Self::TABLE
            .iter()
            .map(|(w, _)| *w)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Named for RaceKind {
    const TABLE: &'static [(&'static str, Self)] = &[
        ("RAW", RaceKind::Raw),
        ("WAR", RaceKind::War),
        ("WAW", RaceKind::Waw),
    ];
}

impl Named for RaceClass {
    const TABLE: &'static [(&'static str, Self)] = &[
        ("race", RaceClass::Race),
        ("scope-too-narrow", RaceClass::ScopeTooNarrow),
        ("missing-acquire", RaceClass::MissingAcquire),
        ("missing-release", RaceClass::MissingRelease),
        ("mixed-width", RaceClass::MixedWidth),
        ("stale-nc", RaceClass::StaleNc),
        ("intra-block", RaceClass::IntraBlock),
        ("missing-wait", RaceClass::MissingWait),
    ];
}

impl Named for Outcome {
    const TABLE: &'static [(&'static str, Self)] = &[
        ("completed", Outcome::Completed),
        ("trap", Outcome::Trap),
        ("fault", Outcome::Fault),
        ("deadlock", Outcome::Deadlock),
        ("budget", Outcome::Budget),
        ("error", Outcome::Error),
    ];
}

impl Named for Access {
    const TABLE: &'static [(&'static str, Self)] = &[
        ("load", Access::Load),
        ("store", Access::Store),
        ("rmw", Access::Rmw),
        ("cas", Access::Cas),
        ("fence", Access::Fence),
    ];
}

impl Named for Order {
    const TABLE: &'static [(&'static str, Self)] = &[
        ("weak", Order::Weak),
        ("relaxed", Order::Relaxed),
        ("acquire", Order::Acquire),
        ("release", Order::Release),
        ("acq_rel", Order::AcqRel),
        ("sc", Order::Sc),
    ];
}

impl Named for Scope {
    const TABLE: &'static [(&'static str, Self)] = &[
        ("cta", Scope::Cta),
        ("cluster", Scope::Cluster),
        ("gpu", Scope::Gpu),
        ("sys", Scope::Sys),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Named + std::fmt::Debug>() {
        for (word, value) in T::TABLE {
            assert_eq!(T::from_word(word), Some(*value));
            assert_eq!(value.word(), *word);
        }
        assert_eq!(T::from_word(""), None);
    }

    #[test]
    fn words_and_values_are_each_others_inverse() {
        round_trip::<RaceKind>();
        round_trip::<RaceClass>();
        round_trip::<Outcome>();
        round_trip::<Access>();
        round_trip::<Order>();
        round_trip::<Scope>();
    }
}
