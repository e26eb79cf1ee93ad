//! Which launches the host's calls order: stream rows, events, the legacy default stream, host synchronisation.
//!
//! A *row* is a clock in device memory that was published by a launch (or joined from others) and never changes once
//! that launch is over. What a stream, an event or the host "knows" is a *frontier*: a few rows none of which covers
//! another. Frontiers are joined here, on paper; only a launch that inherits more than one row needs a joined row in
//! memory (`rows.rs`).
//!
//! Whether a row covers another is known without looking into them: each row belongs to its stream's line, where later
//! rows cover earlier ones, and keeps which row of each other line it covers: a vector clock over streams.

use crate::request::StreamFlags;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A row of clocks: where it is kept, and what it covers.
pub(crate) struct Row<S> {
    /// Its memory.
    pub(crate) storage: S,
    /// Line (stream) and place in it.
    place: (u32, u64),
    /// The last place of each line that it covers, its own included.
    covers: BTreeMap<u32, u64>,
}

/// What a kernel was that is the last thing in its stream: a dependent launch may start before it has ended.
struct LastKernel<S> {
    /// The row that it began with; none: the beginning.
    knew: Option<Rc<Row<S>>>,
    /// Rows that a dependent launch behind it may begin with instead, as the blocks find out (`gsan_device::dependent`).
    hands_over: Vec<Rc<Row<S>>>,
    /// Its out row.
    out: Rc<Row<S>>,
}

/// The rows of a programmatic dependent launch.
pub(crate) struct Dependence<S> {
    /// What it knows from the start: what the kernel before it began with. None: the beginning.
    pub(crate) base: Option<Rc<Row<S>>>,
    /// What it may know from the start instead: what the kernel before it waited for before it let this one begin, or was told itself.
    /// They cover `base`.
    pub(crate) handed: Vec<Rc<Row<S>>>,
    /// What it knows once it has waited: the out row of the kernel before it.
    pub(crate) wait: Rc<Row<S>>,
}

impl<S> Row<S> {
    /// Whether everything in `other` is in this row.
    pub(crate) fn covers(&self, other: &Row<S>) -> bool {
        self.covers
            .get(&other.place.0)
            .is_some_and(|&place| place >= other.place.1)
    }
}

/// Rows of which none covers another: together they are a clock. None: the beginning.
pub(crate) struct Frontier<S> {
    rows: Vec<Rc<Row<S>>>,
}

impl<S> Default for Frontier<S> {
    fn default() -> Self {
        Frontier { rows: Vec::new() }
    }
}

impl<S> Clone for Frontier<S> {
    fn clone(&self) -> Self {
        Frontier {
            rows: self.rows.clone(),
        }
    }
}

impl<S> Frontier<S> {
    /// The rows.
    pub(crate) fn rows(&self) -> &[Rc<Row<S>>] {
        &self.rows
    }

    fn join(&mut self, other: &Frontier<S>) {
        for row in &other.rows {
            if self.rows.iter().any(|known| known.covers(row)) {
                continue;
            }
            self.rows.retain(|known| !row.covers(known));
            self.rows.push(row.clone());
        }
    }
}

/// What orders launches; the tests take each away and see that it is missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edge {
    /// Work of one stream runs in order.
    Stream,
    /// What the host has waited for comes before what it issues.
    Host,
    /// The legacy default stream waits for blocking streams, and they for it.
    LegacyDefault,
    /// An event captures what its stream knows.
    EventRecord,
    /// A stream that waits for an event knows what it captured.
    EventWait,
    /// The host waits for a stream, an event, a device.
    HostStream,
    HostEvent,
    HostDevice,
    /// A question of the host's about one of these, answered with yes, is as good as waiting.
    Query,
    /// A dependent launch starts with what the kernel before it started with …
    DependentBase,
    /// … and what comes after it comes after that kernel too.
    DependentJoin,
    /// … or with what the kernel before it has waited for.
    DependentHandover,
}

#[cfg(not(test))]
const fn without(_: Edge) -> bool {
    false
}

#[cfg(test)]
fn without(edge: Edge) -> bool {
    crate::mutant::is_removed(OF, edge as u32)
}

/// For [`crate::mutant`].
#[cfg(test)]
pub(crate) const OF: &str = "clocks";

struct StreamClock<S> {
    flags: StreamFlags,
    device: u32,
    frontier: Frontier<S>,
    last_place: u64,
    /// If a kernel is the last thing that was issued.
    kernel: Option<LastKernel<S>>,
    /// Out rows of dependent launches so far.
    dependents: u64,
}

/// All that the host's calls have ordered.
pub(crate) struct Clocks<S> {
    streams: Vec<StreamClock<S>>,
    events: Vec<Frontier<S>>,
    host: Frontier<S>,
}

impl<S> Clocks<S> {
    pub(crate) fn new() -> Clocks<S> {
        Clocks {
            streams: Vec::new(),
            events: Vec::new(),
            host: Frontier::default(),
        }
    }

    /// A new stream; numbers count from 0.
    pub(crate) fn add_stream(&mut self, flags: StreamFlags, device: u32) {
        self.streams.push(StreamClock {
            flags,
            device,
            frontier: Frontier::default(),
            last_place: 0,
            kernel: None,
            dependents: 0,
        });
    }

    /// A new event; numbers count from 0.
    pub(crate) fn add_event(&mut self) {
        self.events.push(Frontier::default());
    }

    /// Something is issued to the stream: it is ordered after what the host has waited for, and with the legacy default
    /// stream of the device as the stream's flags say. Returns what the work inherits.
    pub(crate) fn issue(&mut self, stream: usize) -> Frontier<S> {
        let Some(this) = self.streams.get_mut(stream) else {
            return Frontier::default();
        };
        this.kernel = None;
        let own = if without(Edge::Stream) {
            Frontier::default()
        } else {
            this.frontier.clone()
        };
        let frontier = self.beside(stream, own);
        self.streams[stream].frontier = frontier.clone();
        frontier
    }

    /// `frontier`, and all that work of the stream is ordered after besides what is in the stream itself.
    fn beside(&self, stream: usize, mut frontier: Frontier<S>) -> Frontier<S> {
        let Some(this) = self.streams.get(stream) else {
            return frontier;
        };
        let (flags, device) = (this.flags, this.device);
        if !without(Edge::Host) {
            frontier.join(&self.host);
        }
        for (i, other) in self.streams.iter().enumerate() {
            let ordered = match (flags, other.flags) {
                _ if i == stream || other.device != device => false,
                _ if without(Edge::LegacyDefault) => false,
                (StreamFlags::NonBlocking, _) | (_, StreamFlags::NonBlocking) => false,
                (StreamFlags::LegacyDefault, _) | (_, StreamFlags::LegacyDefault) => true,
                _ => false,
            };
            if ordered {
                frontier.join(&other.frontier);
            }
        }
        frontier
    }

    /// An ordinary kernel has been issued: what it began with, and its out row.
    pub(crate) fn kernel_issued(
        &mut self,
        stream: usize,
        knew: Option<Rc<Row<S>>>,
        out: Rc<Row<S>>,
    ) {
        if let Some(this) = self.streams.get_mut(stream) {
            this.kernel = Some(LastKernel {
                knew,
                hands_over: Vec::new(),
                out,
            });
        }
    }

    /// The same of a dependent one.
    pub(crate) fn dependent_issued(
        &mut self,
        stream: usize,
        dependence: Dependence<S>,
        out: Rc<Row<S>>,
    ) {
        let Dependence { base, handed, wait } = dependence;
        let mut hands_over = handed;
        hands_over.push(wait);
        if let Some(this) = self.streams.get_mut(stream) {
            this.kernel = Some(LastKernel {
                knew: base,
                hands_over,
                out,
            });
        }
    }

    /// A kernel is to be issued that may start before the one before it in the stream has ended. `None`: it cannot, since
    /// something else was issued in between, or it comes after something that has to be joined in the stream first.
    pub(crate) fn dependence(&self, stream: usize) -> Option<Dependence<S>> {
        let this = self.streams.get(stream)?;
        let last = this.kernel.as_ref()?;
        // What comes after many of them joins them all.
        if this.frontier.rows.len() > Self::DEPENDENTS {
            return None;
        }
        let rows = last.knew.iter().cloned().collect();
        let base = self.beside(stream, Frontier { rows });
        let base = match &base.rows[..] {
            [] => None,
            [row] => Some(row.clone()),
            _ => return None,
        };
        let covered = |row: &Rc<Row<S>>| base.as_ref().is_none_or(|base| row.covers(base));
        if !last.hands_over.iter().all(covered) {
            return None;
        }
        let base = base.filter(|_| !without(Edge::DependentBase));
        let handed = match without(Edge::DependentHandover) {
            true => Vec::new(),
            false => last.hands_over.clone(),
        };
        let wait = last.out.clone();
        Some(Dependence { base, handed, wait })
    }

    /// How many dependent launches may follow each other.
    const DEPENDENTS: usize = 8;

    /// The out row of a dependent launch. It covers what that kernel began with and no more, since it need not have waited: the
    /// stream knows it beside what it knew before.
    pub(crate) fn publish_dependent(
        &mut self,
        stream: usize,
        storage: S,
        base: Option<&Row<S>>,
    ) -> Rc<Row<S>> {
        let (mut line, mut place) = (u32::MAX, 0);
        if let Some(this) = self.streams.get_mut(stream) {
            // A line of the stream's own for each of those that may follow each other. By the time that one comes round
            // again, all that knows the new row also knows a row that has joined the old one.
            let lines = 2 * Self::DEPENDENTS as u64;
            line = 1 << 31 | (stream as u32) << 4 | (this.dependents % lines) as u32;
            place = this.dependents / lines + 1;
            this.dependents += 1;
        }
        let mut covers = base.map(|row| row.covers.clone()).unwrap_or_default();
        covers.insert(line, place);
        let row = Rc::new(Row {
            storage,
            place: (line, place),
            covers,
        });
        let known = match self.streams.get(stream) {
            Some(this) if !without(Edge::DependentJoin) => this.frontier.clone(),
            _ => Frontier::default(),
        };
        let mut frontier = self.beside(stream, known);
        frontier.rows.push(row.clone());
        if let Some(this) = self.streams.get_mut(stream) {
            this.frontier = frontier;
        }
        row
    }

    /// A row that work on the stream makes out of `inputs`. The stream knows it from now on, and nothing else: it must
    /// cover all that the stream knew.
    pub(crate) fn publish(
        &mut self,
        stream: usize,
        storage: S,
        inputs: &Frontier<S>,
    ) -> Rc<Row<S>> {
        let mut covers = BTreeMap::new();
        for row in &inputs.rows {
            for (&line, &place) in &row.covers {
                let known = covers.entry(line).or_insert(place);
                *known = place.max(*known);
            }
        }
        let line = stream as u32;
        let place = match self.streams.get_mut(stream) {
            Some(this) => {
                this.last_place += 1;
                this.last_place
            }
            None => 0,
        };
        covers.insert(line, place);
        let row = Rc::new(Row {
            storage,
            place: (line, place),
            covers,
        });
        if let Some(this) = self.streams.get_mut(stream) {
            this.frontier = Frontier {
                rows: vec![row.clone()],
            };
        }
        row
    }

    /// The event captures the stream's work so far.
    pub(crate) fn record(&mut self, event: usize, stream: usize) {
        let frontier = self.issue(stream);
        if let Some(event) = self.events.get_mut(event)
            && !without(Edge::EventRecord)
        {
            *event = frontier;
        }
    }

    /// The stream's later work waits for the event.
    pub(crate) fn wait(&mut self, stream: usize, event: usize) {
        self.issue(stream);
        if let (Some(stream), Some(event)) = (self.streams.get_mut(stream), self.events.get(event))
            && !without(Edge::EventWait)
        {
            stream.frontier.join(event);
        }
    }

    /// The host has asked about a stream, an event or a device and been told that all of it has ended: whether that is as good as
    /// having waited.
    pub(crate) fn is_yes_waiting(&self) -> bool {
        !without(Edge::Query)
    }

    /// The host has waited for the stream.
    pub(crate) fn host_waited_for_stream(&mut self, stream: usize) {
        let frontier = self.issue(stream);
        if !without(Edge::HostStream) {
            self.host.join(&frontier);
        }
    }

    /// The host has waited for the event.
    pub(crate) fn host_waited_for_event(&mut self, event: usize) {
        if let Some(event) = self.events.get(event)
            && !without(Edge::HostEvent)
        {
            self.host.join(event);
        }
    }

    /// The host has waited for all work of a device.
    pub(crate) fn host_waited_for_device(&mut self, device: u32) {
        let waited = |s: &&StreamClock<S>| s.device == device && !without(Edge::HostDevice);
        for stream in self.streams.iter().filter(waited) {
            self.host.join(&stream.frontier);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::mutant::removing;
    use StreamFlags::{Blocking, LegacyDefault, NonBlocking, PerThreadDefault};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The named test fails on clocks that lack the edge.
    #[test]
    fn every_removed_edge_is_noticed() {
        let by: [(Edge, fn()); 11] = [
            (Edge::Stream, one_stream_is_in_order_and_two_are_not),
            (
                Edge::Host,
                what_the_host_waited_for_comes_before_all_that_it_issues,
            ),
            (
                Edge::LegacyDefault,
                the_legacy_default_stream_is_ordered_with_blocking_streams_both_ways,
            ),
            (
                Edge::EventRecord,
                an_event_carries_what_came_before_its_record,
            ),
            (
                Edge::EventWait,
                an_event_carries_what_came_before_its_record,
            ),
            (
                Edge::HostStream,
                what_the_host_waited_for_comes_before_all_that_it_issues,
            ),
            (
                Edge::HostEvent,
                what_the_host_waited_for_comes_before_all_that_it_issues,
            ),
            (Edge::HostDevice, devices_have_default_streams_of_their_own),
            (
                Edge::DependentBase,
                a_dependent_launch_starts_with_what_the_one_before_started_with,
            ),
            (
                Edge::DependentJoin,
                what_comes_after_dependent_launches_comes_after_all_of_them,
            ),
            (
                Edge::DependentHandover,
                a_dependent_launch_may_be_told_what_the_one_before_waited_for,
            ),
        ];
        for (edge, test) in by {
            assert!(
                std::panic::catch_unwind(test).is_ok(),
                "{edge:?}: the whole clocks pass"
            );
            let noticed = removing(OF, edge as u32, || std::panic::catch_unwind(test)).is_err();
            assert!(noticed, "nobody noticed that {edge:?} was missing");
        }
    }

    /// A row's storage in these tests: the launches that it covers, the plain truth.
    pub(crate) type Truth = BTreeSet<u32>;

    /// Issues launches, which count up from 0.
    pub(crate) struct Host {
        clocks: Clocks<Truth>,
        launches: u32,
    }

    impl Host {
        pub(crate) fn new(streams: &[StreamFlags]) -> Host {
            let mut clocks = Clocks::new();
            for &flags in streams {
                clocks.add_stream(flags, 0);
            }
            Host {
                clocks,
                launches: 0,
            }
        }

        pub(crate) fn event(&mut self) -> usize {
            self.clocks.add_event();
            self.clocks.events.len() - 1
        }

        pub(crate) fn record(&mut self, event: usize, stream: usize) {
            self.clocks.record(event, stream);
        }

        pub(crate) fn wait(&mut self, stream: usize, event: usize) {
            self.clocks.wait(stream, event);
        }

        /// The next launch's number.
        pub(crate) fn launches(&self) -> u32 {
            self.launches
        }

        /// Launches, and tells which launches come before.
        pub(crate) fn launch(&mut self, stream: usize) -> Truth {
            let inherited = self.clocks.issue(stream);
            let knew = match inherited.rows() {
                [row] => Some(row.clone()),
                _ => None,
            };
            let before: Truth = inherited
                .rows()
                .iter()
                .flat_map(|r| r.storage.iter().copied())
                .collect();
            let mut after = before.clone();
            after.insert(self.launches);
            self.launches += 1;
            let out = self.clocks.publish(stream, after, &inherited);
            self.clocks.kernel_issued(stream, knew, out);
            before
        }
    }

    #[test]
    fn one_stream_is_in_order_and_two_are_not() {
        let mut h = Host::new(&[Blocking, Blocking]);
        assert_eq!(h.launch(0), Truth::new());
        assert_eq!(h.launch(0), Truth::from([0]));
        assert_eq!(h.launch(1), Truth::new());
        assert_eq!(h.launch(0), Truth::from([0, 1]));
    }

    #[test]
    fn an_event_carries_what_came_before_its_record() {
        let mut h = Host::new(&[Blocking, Blocking, NonBlocking]);
        let e = h.event();
        h.launch(0);
        h.clocks.record(e, 0);
        h.launch(0);
        h.clocks.wait(1, e);
        assert_eq!(h.launch(1), Truth::from([0]));
        h.clocks.wait(2, e);
        assert_eq!(h.launch(2), Truth::from([0]));
        // Recording again replaces what it holds.
        h.clocks.record(e, 0);
        h.clocks.wait(2, e);
        assert_eq!(h.launch(2), Truth::from([0, 1, 3]));
    }

    #[test]
    fn an_event_that_was_never_recorded_orders_nothing() {
        let mut h = Host::new(&[Blocking, Blocking]);
        let e = h.event();
        h.launch(0);
        h.clocks.wait(1, e);
        h.clocks.host_waited_for_event(e);
        assert_eq!(h.launch(1), Truth::new());
    }

    #[test]
    fn what_the_host_waited_for_comes_before_all_that_it_issues() {
        let mut h = Host::new(&[Blocking, NonBlocking]);
        let e = h.event();
        h.launch(0);
        h.clocks.record(e, 0);
        h.launch(0);
        h.clocks.host_waited_for_event(e);
        assert_eq!(h.launch(1), Truth::from([0]));
        h.clocks.host_waited_for_stream(0);
        assert_eq!(h.launch(1), Truth::from([0, 1, 2]));
        h.launch(0);
        h.clocks.host_waited_for_device(0);
        assert_eq!(h.launch(1), Truth::from([0, 1, 2, 3, 4]));
    }

    #[test]
    fn the_legacy_default_stream_is_ordered_with_blocking_streams_both_ways() {
        let mut h = Host::new(&[LegacyDefault, Blocking, NonBlocking, PerThreadDefault]);
        h.launch(1); // 0
        h.launch(2); // 1
        h.launch(3); // 2
        assert_eq!(h.launch(0), Truth::from([0, 2])); // 3
        assert_eq!(h.launch(1), Truth::from([0, 2, 3]));
        assert_eq!(h.launch(2), Truth::from([1]));
        assert_eq!(h.launch(3), Truth::from([0, 2, 3]));
    }

    #[test]
    fn devices_have_default_streams_of_their_own() {
        let mut h = Host::new(&[LegacyDefault]);
        h.clocks.add_stream(Blocking, 1);
        h.launch(0);
        assert_eq!(h.launch(1), Truth::new());
        h.clocks.host_waited_for_device(0);
        assert_eq!(h.launch(1), Truth::from([0, 1]));
    }

    impl Host {
        /// Launches so that it may start before the kernel before has ended, and tells which launches come before it, which
        /// once it has waited, and which it may be told of by the one before.
        fn launch_dependent(&mut self, stream: usize) -> Option<(Truth, Truth, Vec<Truth>)> {
            let dependence = self.clocks.dependence(stream)?;
            let base = dependence.base.as_ref().map(|r| r.storage.clone());
            let base = base.unwrap_or_default();
            let after: Truth = base.union(&dependence.wait.storage).copied().collect();
            let handed: Vec<Truth> = dependence
                .handed
                .iter()
                .map(|r| r.storage.clone())
                .collect();
            assert!(handed.iter().all(|h| h.is_superset(&base)));
            let mut all = after.clone();
            all.insert(self.launches);
            self.launches += 1;
            let out = self
                .clocks
                .publish_dependent(stream, all, dependence.base.as_deref());
            self.clocks.dependent_issued(stream, dependence, out);
            Some((base, after, handed))
        }
    }

    #[test]
    fn a_dependent_launch_starts_with_what_the_one_before_started_with() {
        let mut h = Host::new(&[Blocking, NonBlocking]);
        assert!(h.launch_dependent(0).is_none(), "nothing to depend on");
        h.launch(0); // 0
        h.launch(0); // 1
        let two = h.launch_dependent(0).unwrap(); // 2
        assert_eq!(two, (Truth::from([0]), Truth::from([0, 1]), vec![]));
        let (base, after, _) = h.launch_dependent(0).unwrap(); // 3
        assert_eq!((base, after), (Truth::from([0]), Truth::from([0, 1, 2])));
        assert_eq!(h.launch(0), Truth::from([0, 1, 2, 3])); // 4
        // An event in between, and it is an ordinary launch.
        let e = h.event();
        h.clocks.record(e, 0);
        assert!(h.launch_dependent(0).is_none());
        h.clocks.wait(1, e);
        assert_eq!(h.launch(1), Truth::from([0, 1, 2, 3, 4]));
    }

    #[test]
    fn a_dependent_launch_may_be_told_what_the_one_before_waited_for() {
        let mut h = Host::new(&[NonBlocking, NonBlocking]);
        h.launch(0); // 0
        h.clocks.host_waited_for_device(0);
        h.launch(0); // 1
        h.launch_dependent(0).unwrap(); // 2
        let (base, _, handed) = h.launch_dependent(0).unwrap(); // 3
        assert_eq!(base, Truth::from([0]));
        assert_eq!(handed, [Truth::from([0, 1])]);
        let (base, _, handed) = h.launch_dependent(0).unwrap(); // 4
        assert_eq!(base, Truth::from([0]));
        assert_eq!(handed, [Truth::from([0, 1]), Truth::from([0, 1, 2])]);
        // What the host has waited for since would have to be joined with them.
        h.launch(1); // 5
        h.clocks.host_waited_for_stream(1);
        assert!(h.launch_dependent(0).is_none());
    }

    #[test]
    fn what_the_host_has_waited_for_comes_before_a_dependent_launch_too() {
        let mut h = Host::new(&[NonBlocking, NonBlocking]);
        h.launch(1); // 0
        h.launch(0); // 1
        h.clocks.host_waited_for_device(0);
        let next = h.launch_dependent(0);
        // Both rows would have to be joined first; or it knows both.
        assert!(next.is_none_or(|(base, ..)| base == Truth::from([0, 1])));
    }

    /// A kernel that never waits publishes nothing of what was right before it.
    #[test]
    fn what_comes_after_dependent_launches_comes_after_all_of_them() {
        let mut h = Host::new(&[Blocking, NonBlocking]);
        let e = h.event();
        let mut last = Truth::new();
        for round in 0..100u32 {
            let before = h.launch(0);
            assert!(before.is_superset(&last), "{round}");
            last.insert(h.launches - 1);
            let mut many = 0;
            while let Some(dependence) = h.clocks.dependence(0) {
                let own = h.launches;
                h.launches += 1;
                last.insert(own);
                let base = dependence.base.as_deref();
                let mut all = base.map(|r| r.storage.clone()).unwrap_or_default();
                all.insert(own);
                let out = h.clocks.publish_dependent(0, all, base);
                h.clocks.dependent_issued(0, dependence, out);
                many += 1;
                assert!(many < 100);
                if round % 3 == many % 3 {
                    break;
                }
            }
            h.clocks.record(e, 0);
            h.clocks.wait(1, e);
            assert!(h.launch(1).is_superset(&last), "{round}");
        }
    }

    #[test]
    fn frontiers_stay_small() {
        let mut h = Host::new(&[Blocking, Blocking]);
        let e = h.event();
        for _ in 0..1000 {
            h.launch(0);
            h.clocks.record(e, 0);
            h.clocks.wait(1, e);
            h.launch(1);
            h.clocks.host_waited_for_stream(1);
            assert_eq!(h.clocks.host.rows().len(), 1);
        }
        assert!(h.clocks.issue(1).rows().len() == 1);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Launch(usize),
        Record(usize, usize),
        Wait(usize, usize),
        SyncStream(usize),
        SyncEvent(usize),
        SyncDevice,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0usize..4).prop_map(Step::Launch),
            2 => (0usize..3, 0usize..4).prop_map(|(e, s)| Step::Record(e, s)),
            2 => (0usize..4, 0usize..3).prop_map(|(s, e)| Step::Wait(s, e)),
            1 => (0usize..4).prop_map(Step::SyncStream),
            1 => (0usize..3).prop_map(Step::SyncEvent),
            1 => Just(Step::SyncDevice),
        ]
    }

    proptest! {
        /// Against sets of launches, joined without any thought of what covers what.
        #[test]
        fn pruned_frontiers_know_the_same_as_plain_sets(steps in prop::collection::vec(step(), 1..120)) {
            const FLAGS: [StreamFlags; 4] = [LegacyDefault, Blocking, NonBlocking, PerThreadDefault];
            let mut h = Host::new(&FLAGS);
            let mut streams = vec![Truth::new(); 4];
            let mut events = vec![Truth::new(); 3];
            let mut host = Truth::new();
            for _ in 0..3 {
                h.event();
            }
            let issue = |streams: &mut Vec<Truth>, host: &Truth, s: usize| {
                streams[s] = &streams[s] | host;
                for other in 0..4 {
                    let legacy = FLAGS[s] == LegacyDefault || FLAGS[other] == LegacyDefault;
                    if legacy && FLAGS[s] != NonBlocking && FLAGS[other] != NonBlocking {
                        streams[s] = &streams[s] | &streams[other];
                    }
                }
            };
            for step in steps {
                match step {
                    Step::Launch(s) => {
                        issue(&mut streams, &host, s);
                        let id = h.launches;
                        prop_assert_eq!(h.launch(s), streams[s].clone());
                        streams[s].insert(id);
                    }
                    Step::Record(e, s) => {
                        h.clocks.record(e, s);
                        issue(&mut streams, &host, s);
                        events[e] = streams[s].clone();
                    }
                    Step::Wait(s, e) => {
                        h.clocks.wait(s, e);
                        issue(&mut streams, &host, s);
                        streams[s] = &streams[s] | &events[e];
                    }
                    Step::SyncStream(s) => {
                        h.clocks.host_waited_for_stream(s);
                        issue(&mut streams, &host, s);
                        host = &host | &streams[s];
                    }
                    Step::SyncEvent(e) => {
                        h.clocks.host_waited_for_event(e);
                        host = &host | &events[e];
                    }
                    Step::SyncDevice => {
                        h.clocks.host_waited_for_device(0);
                        for s in &streams {
                            host = &host | s;
                        }
                    }
                }
                for a in h.clocks.host.rows() {
                    for b in h.clocks.host.rows() {
                        prop_assert!(Rc::ptr_eq(a, b) || !a.covers(b));
                    }
                }
            }
        }
    }
}
