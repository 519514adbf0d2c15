//! The budgets of owners.

use super::*;

fn amount(tokens: u64, cost: u64) -> Spending {
    Spending { tokens, cost }
}

#[test]
fn an_owner_spends_at_most_the_limit_of_a_day() {
    on_each(|queue| {
        let reserve = |owner: &str, now, requested, limit| {
            queue
                .reserve_spending(owner, requested, limit, now)
                .unwrap()
        };
        let limit = amount(1000, 50);
        let requested = amount(600, 0);
        let first = reserve("acme", at(0), requested, limit).unwrap();
        // Money has a limit for the day only, so all that is left of it may be spent.
        assert_eq!(first, amount(600, 50));
        queue
            .settle_spending("acme", first, amount(500, 10), at(0))
            .unwrap();
        assert_eq!(queue.spending("acme", at(0)).unwrap(), amount(500, 10));
        let second = reserve("acme", at(1), requested, limit).unwrap();
        assert_eq!(second, amount(500, 40));
        // A crash leaves it reserved.
        assert_eq!(reserve("acme", at(2), requested, limit), None);
        assert!(reserve("other", at(2), requested, limit).is_some());
        let day = 24 * 3600;
        assert!(reserve("acme", at(day), requested, limit).is_some());
        // An amount of 0 is no limit.
        let free = amount(0, 0);
        assert_eq!(reserve("acme", at(2), free, free), Some(free));
    });
}

#[test]
fn old_days_are_swept() {
    on_each(|queue| {
        let (requested, none) = (amount(5, 5), Spending::default());
        queue
            .reserve_spending("acme", requested, none, at(0))
            .unwrap();
        let day = 24 * 3600;
        queue.sweep(at(day)).unwrap();
        assert_eq!(queue.spending("acme", at(0)).unwrap(), requested);
        queue.sweep(at(40 * day)).unwrap();
        assert_eq!(queue.spending("acme", at(0)).unwrap(), none);
    });
}
