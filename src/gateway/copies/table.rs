//! Which copies there are: the directory of the disk, in memory.
//!
//! The bounds are those of the configuration: bytes of one site, and of all sites. A file counts
//! with whole blocks. A site that needs room removes its own copies first; if all sites together
//! have too many, the largest one removes some. It removes copies of pages that were requested
//! once before copies that were requested more often. So a client cannot replace the popular pages
//! of a site with pages that only this client requests.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::Config;
use super::file::{Description, Name};
use super::policy::Terms;
use super::request::TargetKey;
use crate::digest::Digest;
use crate::response::Encoding;
use crate::response::encoding::Accepted;
use crate::site::{ProjectId, Site};

/// The unit in which disks give space.
const BLOCK_BYTES: u64 = 4096;
/// A copy is rewritten at most once in this many seconds if the response is the same.
const REFRESH_SECONDS: u64 = 30;
/// How many bytes of responses may be collected at once, before they are written.
const COLLECTED_BYTES_MAX: u64 = 64 << 20;
/// How much of it the sites of one owner may use.
const OWNER_COLLECTED_BYTES_MAX: u64 = COLLECTED_BYTES_MAX / 4;
/// How much of it one site may use.
const SITE_COLLECTED_BYTES_MAX: u64 = OWNER_COLLECTED_BYTES_MAX / 2;
/// What every response that is collected counts for, beside its bytes.
pub(super) const COLLECTING_BYTES: u64 = 4096;

/// All copies.
#[derive(Debug, Default)]
pub(super) struct Table {
    by_project: HashMap<ProjectId, SiteCopies>,
    /// The sites by the bytes that they use.
    by_bytes: BTreeSet<(u64, ProjectId)>,
    bytes: u64,
    count: u64,
    /// Counts copies, so that they have an order.
    tick: u64,
    /// Files that are to be removed.
    to_remove: Vec<Name>,
    /// The digests of site records that were computed.
    records: HashMap<ProjectId, (Arc<Site>, Digest)>,
    /// The responses that are being collected.
    collected: HashMap<ProjectId, Collected>,
    /// The bytes of `collected` by owner.
    collected_by_owner: HashMap<Box<str>, u64>,
    collected_bytes: u64,
    /// The largest response that is collected; a site may always collect one.
    response_bytes_max: u64,
}

/// The copies of one site.
#[derive(Debug)]
struct SiteCopies {
    record: Digest,
    bytes: u64,
    copies: HashMap<TargetKey, Vec<Copy>>,
    /// The first is removed first.
    order: BTreeMap<EvictionOrder, (TargetKey, Encoding)>,
}

/// Whether it was requested again, and when it was stored.
type EvictionOrder = (bool, u64);

#[derive(Debug)]
struct Copy {
    coding: Encoding,
    bytes: u64,
    place: EvictionOrder,
    received: u64,
    /// When it may not be used any more, in seconds after the Unix epoch.
    until: u64,
}

#[derive(Debug, Default)]
struct Collected {
    bytes: u64,
    keys: HashSet<(TargetKey, Encoding)>,
}

// === impl Table ===

impl Table {
    /// Makes an empty table.
    pub(super) fn new(response_bytes_max: u64) -> Self {
        Self {
            response_bytes_max,
            ..Self::default()
        }
    }

    /// Returns the digest of what a site record says about the site's responses.
    pub(super) fn record(&mut self, site: &Arc<Site>) -> Digest {
        if let Some((known, digest)) = self.records.get(&site.project)
            && Arc::ptr_eq(known, site)
        {
            return *digest;
        }
        let Site {
            project,
            owner,
            subdomain,
            domains,
            base_path,
            visibility,
            origin,
            mcp,
            // They do not change what the server of the site responds.
            repository: _,
            lenient: _,
            allow_empty: _,
            numbers: _,
            hsts: _,
            kept_in: _,
            not_ordered: _,
        } = &**site;
        let text = format!(
            "{owner} {subdomain} {domains:?} {base_path:?} {visibility:?} {origin:?} {mcp}"
        );
        let digest = Digest::of(text.as_bytes());
        self.records
            .insert(project.clone(), (Arc::clone(site), digest));
        digest
    }

    /// Returns the copies that a request may get, the newest first.
    pub(super) fn find(
        &mut self,
        site: &Arc<Site>,
        target: &TargetKey,
        accepted: Accepted,
        now: u64,
    ) -> Vec<(Name, Encoding)> {
        let record = self.record(site);
        let Some(copies) = self
            .site_copies(&site.project, record)
            .and_then(|site_copies| site_copies.copies.get(target))
        else {
            return Vec::new();
        };
        let mut found: Vec<&Copy> = copies
            .iter()
            .filter(|copy| copy.until > now && accepted.takes(copy.coding))
            .collect();
        found.sort_by_key(|copy| std::cmp::Reverse(copy.place.1));
        let name = |copy: &&Copy| {
            let name = Name::of(&site.project, &record, target, copy.coding);
            (name, copy.coding)
        };
        found.iter().map(name).collect()
    }

    /// Begins to collect a response, with this many bytes of its head. Returns the digest of the
    /// site record, or `None` if the response is not needed now.
    pub(super) fn begin(
        &mut self,
        site: &Arc<Site>,
        target: &TargetKey,
        terms: &Terms,
        bytes: u64,
        now: u64,
    ) -> Option<Digest> {
        let record = self.record(site);
        if let Some(site_copies) = self.site_copies(&site.project, record)
            && let Some(received) = site_copies.requested_again(target, terms.coding)
            && now.saturating_sub(received) < REFRESH_SECONDS
        {
            return None;
        }
        let key = (*target, terms.coding);
        let collected = self.collected.get(&site.project);
        if collected.is_some_and(|collected| collected.keys.contains(&key)) {
            return None;
        }
        if !self.reserve(site, bytes) {
            return None;
        }
        let collected = self.collected.entry(site.project.clone()).or_default();
        collected.keys.insert(key);
        Some(record)
    }

    /// Counts more bytes of a response that is collected. Returns whether there is room for them:
    /// for the site, for its owner, and for all.
    pub(super) fn reserve(&mut self, site: &Site, bytes: u64) -> bool {
        let of_site = self.collected.get(&site.project);
        let of_site = of_site.map_or(0, |collected| collected.bytes);
        let of_owner = self.collected_by_owner.get(&site.owner);
        let of_owner = of_owner.copied().unwrap_or(0);
        let one = self.response_bytes_max;
        let has_room = of_site + bytes <= SITE_COLLECTED_BYTES_MAX.max(one)
            && of_owner + bytes <= OWNER_COLLECTED_BYTES_MAX.max(one)
            && self.collected_bytes + bytes <= COLLECTED_BYTES_MAX;
        if has_room {
            let collected = self.collected.entry(site.project.clone()).or_default();
            collected.bytes += bytes;
            let of_owner = self.collected_by_owner.entry(site.owner.clone());
            *of_owner.or_default() += bytes;
            self.collected_bytes += bytes;
        }
        has_room
    }

    /// Ends what [`Table::begin`] has begun, with all bytes that were counted for it. `site` is the
    /// one that it began with.
    pub(super) fn end(&mut self, site: &Site, key: &(TargetKey, Encoding), bytes: u64) {
        let Some(collected) = self.collected.get_mut(&site.project) else {
            return;
        };
        if !collected.keys.remove(key) {
            return;
        }
        collected.bytes -= bytes;
        self.collected_bytes -= bytes;
        if collected.keys.is_empty() {
            self.collected.remove(&site.project);
        }
        if let Some(of_owner) = self.collected_by_owner.get_mut(&site.owner) {
            *of_owner -= bytes;
            if *of_owner == 0 {
                self.collected_by_owner.remove(&site.owner);
            }
        }
    }

    /// Makes room for a copy and adds it. Returns its name and how many others were removed for
    /// it; `None` if it is too large, or the site has another record now.
    pub(super) fn put(
        &mut self,
        config: &Config,
        project: &ProjectId,
        description: &Description,
        file_bytes: u64,
    ) -> Option<(Name, u64)> {
        let (target, coding) = description.key()?;
        let record = description.record;
        let bytes = file_bytes.next_multiple_of(BLOCK_BYTES);
        if bytes > config.site_bytes_max.min(config.total_bytes_max) {
            return None;
        }
        if self
            .records
            .get(project)
            .is_some_and(|(_, now)| *now != record)
        {
            return None;
        }
        // The same file is replaced.
        let was_asked = self.take(project, record, &target, coding);
        let mut removed = 0;
        while self.bytes_of(project) + bytes > config.site_bytes_max {
            removed += u64::from(self.evict(project.clone()));
        }
        while self.bytes + bytes > config.total_bytes_max {
            let (_, largest) = self.by_bytes.last()?.clone();
            removed += u64::from(self.evict(largest));
        }
        self.tick += 1;
        let place = (was_asked, self.tick);
        let site_copies = self
            .by_project
            .entry(project.clone())
            .or_insert_with(|| SiteCopies {
                record,
                bytes: 0,
                copies: HashMap::new(),
                order: BTreeMap::new(),
            });
        let copy = Copy {
            coding,
            bytes,
            place,
            received: description.received,
            until: description
                .received
                .saturating_add(description.fresh)
                .saturating_add(description.stale)
                .saturating_sub(description.age),
        };
        site_copies.order.insert(place, (target, coding));
        site_copies.copies.entry(target).or_default().push(copy);
        self.grow(project, bytes);
        let name = Name::of(project, &record, &target, coding);
        // The file that has its place now.
        self.to_remove.retain(|other| *other != name);
        Some((name, removed))
    }

    /// Forgets all copies of a target. Returns how many there were.
    pub(super) fn forget(&mut self, site: &Arc<Site>, target: &TargetKey) -> u64 {
        let record = self.record(site);
        let codings = Encoding::CODED.into_iter().chain([Encoding::Identity]);
        let mut removed = 0;
        for coding in codings {
            let before = self.count;
            self.take(&site.project, record, target, coding);
            if self.count < before {
                removed += 1;
                let name = Name::of(&site.project, &record, target, coding);
                self.to_remove.push(name);
            }
        }
        removed
    }

    /// Forgets the copy whose file is damaged.
    pub(super) fn forget_damaged(
        &mut self,
        site: &Arc<Site>,
        target: &TargetKey,
        coding: Encoding,
    ) {
        let record = self.record(site);
        self.take(&site.project, record, target, coding);
        let name = Name::of(&site.project, &record, target, coding);
        self.to_remove.push(name);
    }

    /// Forgets a copy whose file could not be moved to its place.
    pub(super) fn forget_written(&mut self, project: &ProjectId, description: &Description) {
        if let Some((target, coding)) = description.key() {
            let record = description.record;
            self.take(project, record, &target, coding);
            self.to_remove
                .push(Name::of(project, &record, &target, coding));
        }
    }

    /// Forgets all copies of sites that are gone or have another record. `current` returns the
    /// site of a project. Returns how many copies there were.
    pub(super) fn forget_sites(
        &mut self,
        current: impl Fn(&ProjectId) -> Option<Arc<Site>>,
    ) -> u64 {
        self.records.clear();
        let projects: Vec<_> = self.by_project.keys().cloned().collect();
        let before = self.count;
        for project in projects {
            match current(&project) {
                Some(site) => {
                    let record = self.record(&site);
                    self.site_copies(&project, record);
                }
                None => self.clear(&project),
            }
        }
        before - self.count
    }

    /// Forgets the copies of a site that may not be used any more.
    pub(super) fn forget_expired(&mut self, project: &ProjectId, now: u64) -> u64 {
        let Some(site_copies) = self.by_project.get(project) else {
            return 0;
        };
        let record = site_copies.record;
        let all = site_copies.copies.iter();
        let expired: Vec<_> = all
            .flat_map(|(target, copies)| copies.iter().map(|copy| (*target, copy)))
            .filter(|(_, copy)| copy.until <= now)
            .map(|(target, copy)| (target, copy.coding))
            .collect();
        for (target, coding) in &expired {
            self.take(project, record, target, *coding);
            self.to_remove
                .push(Name::of(project, &record, target, *coding));
        }
        expired.len() as u64
    }

    pub(super) fn projects(&self) -> Vec<ProjectId> {
        self.by_project.keys().cloned().collect()
    }

    /// Returns the files that are to be removed, once.
    pub(super) fn take_files_to_remove(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.to_remove)
    }

    /// Returns how many copies there are, and how many bytes they have.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.count, self.bytes)
    }

    /// Returns the copies of a site whose record has this digest; those of an earlier record are
    /// forgotten.
    fn site_copies(&mut self, project: &ProjectId, record: Digest) -> Option<&mut SiteCopies> {
        if self.by_project.get(project)?.record != record {
            self.clear(project);
        }
        self.by_project.get_mut(project)
    }

    /// Forgets all copies of a site.
    fn clear(&mut self, project: &ProjectId) {
        let Some(site_copies) = self.by_project.remove(project) else {
            return;
        };
        for (target, coding) in site_copies.order.values() {
            let name = Name::of(project, &site_copies.record, target, *coding);
            self.to_remove.push(name);
        }
        self.count -= site_copies.order.len() as u64;
        self.bytes -= site_copies.bytes;
        self.by_bytes.remove(&(site_copies.bytes, project.clone()));
    }

    /// Takes a copy out, without its file. Returns whether it was requested again.
    fn take(
        &mut self,
        project: &ProjectId,
        record: Digest,
        target: &TargetKey,
        coding: Encoding,
    ) -> bool {
        let Some(copy) = self
            .site_copies(project, record)
            .and_then(|site_copies| site_copies.take(target, coding))
        else {
            return false;
        };
        self.shrink(project, copy.bytes);
        copy.place.0
    }

    /// Removes the copy of a site that is needed least. Returns whether there was one.
    fn evict(&mut self, project: ProjectId) -> bool {
        let Some(site_copies) = self.by_project.get(&project) else {
            return false;
        };
        let Some((target, coding)) = site_copies.order.first_key_value().map(|(_, key)| *key)
        else {
            return false;
        };
        let record = site_copies.record;
        self.take(&project, record, &target, coding);
        self.to_remove
            .push(Name::of(&project, &record, &target, coding));
        true
    }

    fn bytes_of(&self, project: &ProjectId) -> u64 {
        self.by_project
            .get(project)
            .map_or(0, |site_copies| site_copies.bytes)
    }

    fn grow(&mut self, project: &ProjectId, bytes: u64) {
        let Some(site_copies) = self.by_project.get_mut(project) else {
            return;
        };
        self.by_bytes.remove(&(site_copies.bytes, project.clone()));
        site_copies.bytes += bytes;
        self.by_bytes.insert((site_copies.bytes, project.clone()));
        self.bytes += bytes;
        self.count += 1;
    }

    fn shrink(&mut self, project: &ProjectId, bytes: u64) {
        let Some(site_copies) = self.by_project.get_mut(project) else {
            return;
        };
        self.by_bytes.remove(&(site_copies.bytes, project.clone()));
        site_copies.bytes -= bytes;
        match site_copies.order.is_empty() {
            true => {
                self.by_project.remove(project);
            }
            false => {
                self.by_bytes.insert((site_copies.bytes, project.clone()));
            }
        }
        self.bytes -= bytes;
        self.count -= 1;
    }
}

// === impl SiteCopies ===

impl SiteCopies {
    /// Notes that a copy was requested again. Returns when it was received.
    fn requested_again(&mut self, target: &TargetKey, coding: Encoding) -> Option<u64> {
        let copies = self.copies.get_mut(target)?;
        let copy = copies.iter_mut().find(|copy| copy.coding == coding)?;
        let place = (true, copy.place.1);
        if copy.place != place {
            self.order.remove(&copy.place);
            self.order.insert(place, (*target, coding));
            copy.place = place;
        }
        Some(copy.received)
    }

    fn take(&mut self, target: &TargetKey, coding: Encoding) -> Option<Copy> {
        let copies = self.copies.get_mut(target)?;
        let at = copies.iter().position(|copy| copy.coding == coding)?;
        let copy = copies.swap_remove(at);
        if copies.is_empty() {
            self.copies.remove(target);
        }
        self.order.remove(&copy.place);
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1000;

    fn site(project: &str) -> Arc<Site> {
        Arc::new(Site::new(ProjectId::parse(project).unwrap()))
    }

    fn terms() -> Terms {
        Terms {
            coding: Encoding::Identity,
            age: 0,
            fresh: 0,
            stale: 500,
            length: None,
        }
    }

    fn target(number: u8) -> TargetKey {
        TargetKey::from_bytes([number; 16])
    }

    fn config(site: u64, total: u64) -> Config {
        Config {
            site_bytes_max: site * BLOCK_BYTES,
            total_bytes_max: total * BLOCK_BYTES,
            ..Config::default()
        }
    }

    /// Adds a copy of one block.
    fn put(table: &mut Table, config: &Config, site: &Arc<Site>, number: u8) -> bool {
        let record = table.record(site);
        let description = Description::new(&site.project, record, &target(number), &terms(), NOW);
        let put = table.put(config, &site.project, &description, 100);
        put.is_some()
    }

    fn has(table: &mut Table, site: &Arc<Site>, number: u8) -> bool {
        let found = table.find(site, &target(number), Accepted::IDENTITY_ONLY, NOW);
        !found.is_empty()
    }

    #[test]
    fn a_page_that_was_requested_again_stays_and_a_site_removes_its_own() {
        let (mut table, config) = (Table::default(), config(3, 100));
        let (acme, other) = (site("acme"), site("other"));
        assert!(put(&mut table, &config, &other, 0));
        assert!(put(&mut table, &config, &acme, 1));
        assert_eq!(table.begin(&acme, &target(1), &terms(), 10, NOW), None);
        for number in 2..100 {
            assert!(put(&mut table, &config, &acme, number));
        }
        let left: Vec<u8> = (0..100).filter(|it| has(&mut table, &acme, *it)).collect();
        assert_eq!(left, [1, 98, 99]);
        assert!(has(&mut table, &other, 0));
        assert_eq!(table.size(), (4, 4 * BLOCK_BYTES));
        assert_eq!(table.take_files_to_remove().len(), 96);
    }

    #[test]
    fn if_all_have_too_much_the_largest_site_removes_some() {
        let (mut table, config) = (Table::default(), config(6, 8));
        let (large, small) = (site("large"), site("small"));
        for number in 0..2 {
            assert!(put(&mut table, &config, &small, number));
        }
        for number in 0..20 {
            assert!(put(&mut table, &config, &large, number));
        }
        assert!(put(&mut table, &config, &small, 2));
        assert!((0..3).all(|number| has(&mut table, &small, number)));
        assert_eq!(table.size(), (8, 8 * BLOCK_BYTES));
    }

    #[test]
    fn a_changed_record_and_a_deleted_site_lose_their_copies() {
        let (mut table, config) = (Table::default(), config(9, 9));
        let acme = site("acme");
        assert!(put(&mut table, &config, &acme, 1));
        let moved = Arc::new(Site {
            owner: "other".into(),
            ..(*acme).clone()
        });
        assert!(!has(&mut table, &moved, 1));
        assert_eq!(
            (table.size(), table.take_files_to_remove().len()),
            ((0, 0), 1)
        );
        assert!(put(&mut table, &config, &acme, 1));
        // What other settings say does not matter.
        let lenient = Arc::new(Site {
            lenient: true,
            ..(*acme).clone()
        });
        assert_eq!(table.forget_sites(|_| Some(Arc::clone(&lenient))), 0);
        assert!(has(&mut table, &lenient, 1));
        assert_eq!(table.forget_sites(|_| None), 1);
        assert!(!has(&mut table, &acme, 1));
        // A response that was begun under an earlier record comes too late.
        let record = table.record(&acme);
        let late = Description::new(&acme.project, record, &target(1), &terms(), NOW);
        table.record(&moved);
        assert_eq!(table.put(&config, &acme.project, &late, 100), None);
    }

    #[test]
    fn what_is_collected_is_bounded_and_collected_once() {
        let mut table = Table::default();
        let (acme, other) = (site("acme"), site("other"));
        let half = SITE_COLLECTED_BYTES_MAX / 2;
        let begin = |table: &mut Table, site: &Arc<Site>, number| {
            let begun = table.begin(site, &target(number), &terms(), half, NOW);
            begun.is_some()
        };
        assert!(begin(&mut table, &acme, 1));
        assert!(!begin(&mut table, &acme, 1));
        assert!(begin(&mut table, &acme, 2));
        assert!(!begin(&mut table, &acme, 3));
        assert!(!table.reserve(&acme, 1));
        assert!(begin(&mut table, &other, 3));
        let key = (target(1), Encoding::Identity);
        table.end(&acme, &key, half);
        table.end(&acme, &key, half);
        assert!(table.reserve(&acme, 1));
        assert!(!begin(&mut table, &acme, 3));
        assert_eq!(table.collected_bytes, 2 * half + 1);
    }

    #[test]
    fn the_sites_of_one_owner_leave_room_for_those_of_others() {
        let mut table = Table::default();
        let owned = |n: usize| {
            let project = ProjectId::parse(&format!("many-{n}")).unwrap();
            Arc::new(Site {
                owner: "many".into(),
                ..Site::new(project)
            })
        };
        let sites: Vec<_> = (0..10).map(owned).collect();
        for site in &sites {
            for number in 0..100 {
                table.begin(site, &target(number), &terms(), 1 << 20, NOW);
            }
        }
        assert_eq!(table.collected_bytes, OWNER_COLLECTED_BYTES_MAX);
        let acme = site("acme");
        let begun = table.begin(&acme, &target(1), &terms(), 1 << 20, NOW);
        assert!(begun.is_some());
        for site in &sites {
            for number in 0..100 {
                table.end(site, &(target(number), Encoding::Identity), 1 << 20);
            }
        }
        table.end(&acme, &(target(1), Encoding::Identity), 1 << 20);
        assert_eq!(table.collected_bytes, 0);
        assert!(table.collected.is_empty() && table.collected_by_owner.is_empty());
    }

    #[test]
    fn an_expired_copy_is_not_found_and_is_removed() {
        let (mut table, config) = (Table::default(), config(9, 9));
        let acme = site("acme");
        assert!(put(&mut table, &config, &acme, 1));
        let find = |table: &mut Table, now| {
            let found = table.find(&acme, &target(1), Accepted::IDENTITY_ONLY, now);
            found.len()
        };
        assert_eq!((find(&mut table, 1499), find(&mut table, 1500)), (1, 0));
        assert_eq!(table.forget_expired(&acme.project, 1499), 0);
        assert_eq!(table.forget_expired(&acme.project, 1500), 1);
        assert_eq!(
            (table.size(), table.take_files_to_remove().len()),
            ((0, 0), 1)
        );
    }
}
