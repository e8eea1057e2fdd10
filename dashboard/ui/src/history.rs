//! Undo and redo of the window's state. A state becomes a step once it has settled, so that a drag or a zoom with the
//! wheel is one step.

/// Time without changes after which a state is settled, seconds.
pub const SETTLED_S: f64 = 0.5;
/// Steps that are stored, at most.
const MAX_STEPS: usize = 200;

/// Undo and redo of states of type `T`.
#[derive(Debug)]
pub struct History<T> {
    past: Vec<T>,
    current: Option<T>,
    future: Vec<T>,
    /// The state that is shown but may still change, and the time of its last change.
    unsettled: Option<(T, f64)>,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { past: Vec::new(), current: None, future: Vec::new(), unsettled: None }
    }
}

impl<T: PartialEq + Clone> History<T> {
    /// Records the state shown at `now`, seconds. Returns whether the state may still change, so that another call must
    /// follow.
    pub fn observe(&mut self, shown: T, now: f64) -> bool {
        if self.current.is_none() {
            self.current = Some(shown);
            return false;
        }
        if self.current.as_ref() == Some(&shown) {
            self.unsettled = None;
            return false;
        }
        match &self.unsettled {
            Some((unsettled, since)) if *unsettled == shown => {
                if now - since < SETTLED_S {
                    return true;
                }
                self.settle();
                false
            }
            _ => {
                self.unsettled = Some((shown, now));
                true
            }
        }
    }

    /// Replaces the current state, as after loading, without a step to undo.
    pub fn replace(&mut self, shown: T) {
        self.current = Some(shown);
        self.unsettled = None;
    }

    /// Makes the state that may still change a step.
    fn settle(&mut self) {
        if let Some((shown, _)) = self.unsettled.take() {
            self.past.extend(self.current.replace(shown));
            self.future.clear();
            if self.past.len() > MAX_STEPS {
                self.past.remove(0);
            }
        }
    }

    /// Goes one step back; returns the state to show.
    pub fn undo(&mut self) -> Option<T> {
        self.settle();
        let previous = self.past.pop()?;
        self.future.extend(self.current.replace(previous.clone()));
        Some(previous)
    }

    /// Goes one step forward; returns the state to show.
    pub fn redo(&mut self) -> Option<T> {
        self.settle();
        let next = self.future.pop()?;
        self.past.extend(self.current.replace(next.clone()));
        Some(next)
    }

    /// Whether undo and redo have a step.
    #[cfg(test)]
    fn has_undo_redo(&self) -> (bool, bool) {
        (!self.past.is_empty() || self.unsettled.is_some(), !self.future.is_empty() && self.unsettled.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drag_is_one_step() {
        let mut history = History::default();
        for (at, shown) in [(0.0, 0), (1.0, 1), (1.1, 2), (1.2, 3), (1.5, 3)] {
            history.observe(shown, at);
        }
        assert_eq!(history.has_undo_redo(), (true, false));
        assert!(!history.observe(3, 1.8), "settled");
        history.observe(4, 2.0);
        assert_eq!(history.undo(), Some(3), "what moves settles at once");
        assert_eq!(history.undo(), Some(0));
        assert_eq!((history.undo(), history.has_undo_redo()), (None, (false, true)));
        assert_eq!((history.redo(), history.redo(), history.redo()), (Some(3), Some(4), None));
        history.undo();
        history.observe(9, 5.0);
        history.observe(9, 6.0);
        assert_eq!(history.has_undo_redo(), (true, false), "a new way forgets the old one");
        assert_eq!(history.undo(), Some(3));
    }

    #[test]
    fn long_sessions_are_bounded() {
        let mut history = History::default();
        for i in 0..1000 {
            history.observe(i, f64::from(i));
            history.observe(i, f64::from(i) + SETTLED_S);
        }
        let mut n = 0;
        while history.undo().is_some() {
            n += 1;
        }
        assert_eq!(n, MAX_STEPS);
    }
}
