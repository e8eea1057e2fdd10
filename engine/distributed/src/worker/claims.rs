//! Which masters may use the task. One that drops variables to make its own takes the task for itself; one that was there before, and
//! was stopped or cut off meanwhile, must not touch them when it comes back: not even with what it prepares only then.

use std::collections::VecDeque;

/// Masters that are remembered after they went.
const MAX_KNOWN: usize = 1024;

/// Who came, in that order, and who took the task.
#[derive(Debug, Default)]
pub(super) struct Claims {
    known: VecDeque<KnownMaster>,
    next: u64,
    owner: Option<Owner>,
}

/// A master that came.
#[derive(Debug)]
struct KnownMaster {
    master: u64,
    /// Of its coming. It keeps it when it comes again.
    number: u64,
    claim: Claim,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Claim {
    /// It never took the task.
    Never,
    /// Nobody took it after this one.
    Newest,
    /// What this one made was dropped by another, and may have been made again since.
    Void,
}

#[derive(Debug)]
struct Owner {
    master: u64,
    /// Who has a smaller number came before it.
    since: u64,
}

impl Claims {
    /// A master is there.
    pub fn add(&mut self, master: u64) {
        if self.known(master).is_some() {
            return;
        }
        if self.known.len() == MAX_KNOWN {
            self.known.pop_front();
        }
        self.known.push_back(KnownMaster { master, number: self.next, claim: Claim::Never });
        self.next += 1;
    }

    /// A master is gone: what it took is free.
    pub fn leave(&mut self, master: u64) {
        self.owner = self.owner.take().filter(|owner| owner.master != master);
    }

    /// A master takes the task. It is free again when that master leaves, but not for who had taken it before.
    pub fn claim(&mut self, master: u64) {
        for known in &mut self.known {
            known.claim = match known.claim {
                _ if known.master == master => Claim::Newest,
                Claim::Newest => Claim::Void,
                other => other,
            };
        }
        self.owner = Some(Owner { master, since: self.next });
    }

    /// Whether a master may use the task: nobody took it, or this one did, or this one came later; and nobody took it from this one.
    pub fn admits(&self, master: u64) -> bool {
        let known = self.known(master);
        if known.is_some_and(|known| known.claim == Claim::Void) {
            return false;
        }
        let Some(owner) = &self.owner else { return true };
        owner.master == master || known.is_some_and(|known| known.number >= owner.since)
    }

    fn known(&self, master: u64) -> Option<&KnownMaster> {
        self.known.iter().find(|known| known.master == master)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_before_an_owner_waits_for_its_end() {
        let mut claims = Claims::default();
        claims.add(7);
        claims.add(8);
        assert!(claims.admits(7) && claims.admits(8));
        claims.claim(8);
        claims.add(9);
        assert!(!claims.admits(7) && claims.admits(8) && claims.admits(9));
        // Coming again does not help, taking it back does.
        claims.leave(7);
        claims.add(7);
        assert!(!claims.admits(7));
        claims.claim(7);
        assert!(claims.admits(7) && !claims.admits(8) && !claims.admits(9));
        // Who never took it may go on when the owner has left; who had taken it has to take it again.
        claims.leave(7);
        assert!(!claims.admits(8) && claims.admits(9));
        claims.claim(8);
        claims.leave(8);
        assert!(claims.admits(8) && !claims.admits(7));
    }

    #[test]
    fn no_more_are_remembered_than_that() {
        let mut claims = Claims::default();
        (0..3 * MAX_KNOWN as u64).for_each(|master| claims.add(master));
        assert_eq!(claims.known.len(), MAX_KNOWN);
    }
}
