//! Elements of several lists, one of each list at a time.

use std::collections::VecDeque;

/// Returns the elements of several lists: the first of every list before any second one.
pub(super) fn interleave<L: IntoIterator>(
    lists: impl IntoIterator<Item = L>,
) -> impl Iterator<Item = L::Item> {
    let mut lists: VecDeque<_> = lists.into_iter().map(L::into_iter).collect();
    std::iter::from_fn(move || {
        loop {
            let mut list = lists.pop_front()?;
            if let Some(element) = list.next() {
                lists.push_back(list);
                return Some(element);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_every_list_comes_before_any_second_one() {
        let lists = [vec!["a1"], vec![], vec!["c1", "c2", "c3"], vec!["d1", "d2"]];
        let all: Vec<_> = interleave(lists).collect();
        assert_eq!(all, ["a1", "c1", "d1", "c2", "d2", "c3"]);
        assert_eq!(interleave(Vec::<Vec<u8>>::new()).next(), None);
    }
}
