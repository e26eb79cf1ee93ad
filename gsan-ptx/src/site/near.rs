//! Where no line of the user's belongs to an instruction: the user's lines around it.
//!
//! rustc with `debug = "line-directives-only"` says of an atomic only where in `core` it stands, not who calls it. The function's own
//! lines before and behind it in the text are what there is: the call is one of them or close by, and a report says no more than that.

use super::{Locations, Place, Site};
use crate::ast::Loc;

/// Follows the lines of a module's functions.
#[derive(Default)]
pub(crate) struct Near {
    /// The latest line of the user's in the function.
    before: Option<Place>,
    /// From here on sites wait for the next one.
    waiting: usize,
}

impl Near {
    /// A function begins.
    pub(crate) fn function(&mut self, sites: &[Site]) {
        self.before = None;
        self.waiting = sites.len();
    }

    /// A line begins.
    pub(crate) fn see<'a>(&mut self, loc: &Loc<'a>, locations: &Locations<'a>, sites: &mut [Site]) {
        let Some(place) = locations.user_line(loc) else {
            return;
        };
        for site in sites.iter_mut().skip(self.waiting) {
            let known = site
                .near
                .iter()
                .any(|p| p.line == place.line && p.file == place.file);
            if !known && locations.lost(&site.places) {
                site.near.push(place.clone());
            }
        }
        self.waiting = sites.len();
        self.before = Some(place);
    }

    /// What there is before a site with these places.
    pub(crate) fn before(&self, places: &[Place], locations: &Locations<'_>) -> Vec<Place> {
        let before = self.before.iter().filter(|_| locations.lost(places));
        before.cloned().collect()
    }
}
