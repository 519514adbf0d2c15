//! Tests of releases: equal content has an equal id, and no damaged inventory is read.

use super::*;

fn path(text: &str) -> ReleasePath {
    ReleasePath::parse(text).unwrap()
}

fn release(files: &[(&str, &str)]) -> Release {
    let mut builder = Release::builder();
    for (name, text) in files {
        let file = ReleaseFile::new(Bytes::copy_from_slice(text.as_bytes()), "text/markdown");
        builder.insert(path(name), file).unwrap();
    }
    builder.finish()
}

#[test]
fn the_order_of_insertion_does_not_change_the_id() {
    let one = release(&[("a", "1"), ("b", "2"), ("b.md", "3")]);
    let other = release(&[("b.md", "3"), ("b", "2"), ("a", "1")]);
    assert_eq!(one.id(), other.id());
    assert_eq!(one.inventory_bytes(), other.inventory_bytes());
}

#[test]
fn a_changed_byte_path_or_media_type_changes_the_id() {
    let ids = [
        release(&[("a", "1")]).id(),
        release(&[("a", "2")]).id(),
        release(&[("b", "1")]).id(),
        {
            let mut builder = Release::builder();
            builder
                .insert(path("a"), ReleaseFile::new("1", "text/plain"))
                .unwrap();
            builder.finish().id()
        },
    ];
    let distinct = ids.iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(distinct.len(), ids.len());
}

#[test]
fn the_canonical_bytes_are_these() {
    let digest = Digest::of(b"1");
    assert_eq!(
        release(&[("a/b", "1")]).inventory_bytes(),
        &format!(
            r#"{{"version":1,"files":{{"a/b":{{"digest":"{digest}","length":1,"media_type":"text/markdown"}}}}}}"#
        )
    );
}

#[test]
fn an_inventory_reads_back_as_it_was_written() {
    let release = release(&[("a", "1"), ("ü/\"b\"", "2")]);
    let read = Inventory::parse(release.inventory_bytes()).unwrap();
    assert_eq!(&read, release.inventory());
    assert_eq!(read.id(), release.id());
}

#[test]
fn a_later_version_is_rejected_by_its_number() {
    for later in [
        r#"{"version":2,"files":{}}"#,
        r#"{"version":2,"pages":[],"files":{"a":{"blob":1}}}"#,
        r#"{"version":99999999999,"files":{}}"#,
    ] {
        let error = Inventory::parse(later.as_bytes()).unwrap_err();
        assert!(matches!(error, InvalidInventory::Newer { .. }), "{error}");
    }
}

#[test]
fn inventories_in_another_format_are_rejected() {
    let digest = Digest::of(b"1");
    let item = format!(r#"{{"digest":"{digest}","length":1,"media_type":"text/plain"}}"#);
    for wrong in [
        String::new(),
        "{}".to_owned(),
        r#"{"version":0,"files":{}}"#.to_owned(),
        r#"{"version":1,"files":{},"extra":1}"#.to_owned(),
        format!(r#"{{"version":1,"files":{{"b":{item},"a":{item}}}}}"#),
        format!(r#"{{"version":1,"files":{{"a":{item},"a":{item}}}}}"#),
        format!(r#"{{"version":1,"files":{{"../a":{item}}}}}"#),
        format!(r#"{{"version":1,"files":{{"a":{item}}}}}"#).replace("text/plain", "a/b\\r\\nc"),
        format!(r#"{{"version":1,"files":{{"a":{item}}}}}"#).replace(":1,\"m", ":-1,\"m"),
    ] {
        let error = Inventory::parse(wrong.as_bytes()).unwrap_err();
        assert!(matches!(error, InvalidInventory::Json(_)), "{wrong}");
    }
}

#[test]
fn a_file_that_does_not_fit_leaves_the_release_as_it_was() {
    let mut builder = Release::builder();
    let file = || ReleaseFile::new("1", "text/plain");
    builder.insert(path("a/b"), file()).unwrap();
    builder.insert(path("c"), file()).unwrap();
    let before = release(&[]).id();
    assert_eq!(
        builder.insert(path("c"), file()),
        Err(InsertError::Taken(path("c")))
    );
    assert_eq!(
        builder.insert(path("c/d"), file()),
        Err(InsertError::FileAndDirectory("c".into()))
    );
    assert_eq!(
        builder.insert(path("a"), file()),
        Err(InsertError::FileAndDirectory("a".into()))
    );
    assert_eq!(
        builder.insert(path("e"), ReleaseFile::new("1", "text")),
        Err(InsertError::MediaType("text".into()))
    );
    let release = builder.finish();
    assert_ne!(release.id(), before);
    assert_eq!(release.files().len(), 2);
}

#[test]
fn an_id_has_one_spelling() {
    let id = release(&[("a", "1")]).id();
    assert_eq!(ReleaseId::parse(&id.to_string()), Ok(id));
    assert!(ReleaseId::parse(&id.to_string().to_uppercase()).is_err());
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(json, format!("\"{id}\""));
    assert_eq!(serde_json::from_str::<ReleaseId>(&json).unwrap(), id);
}
