//! Pages from the cache, and their codings.

use super::*;

#[test]
fn each_encoding_has_its_entity_tag_and_a_matching_tag_gets_304() {
    let served = served("");
    let ask = RequestHeaders {
        accept_encoding: Some(b"br"),
        ..RequestHeaders::GET
    };
    let page = response(&served, "/guides/a", &ask);
    assert_eq!(page.encoding, crate::response::Encoding::Brotli);
    let mut tag = Vec::new();
    page.etag.unwrap().write(&mut tag);
    let ask = RequestHeaders {
        conditions: Conditions {
            if_none_match: Some(&tag),
            ..Conditions::default()
        },
        ..ask
    };
    let again = response(&served, "/guides/a", &ask);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let plain = RequestHeaders {
        accept_encoding: None,
        ..ask
    };
    assert_eq!(response(&served, "/guides/a", &plain).status, 200);
}

#[test]
fn a_page_that_is_not_cached_is_read_once_and_then_comes_from_the_cache() {
    let served = served("");
    let cached = |ask| respond_from_memory(&served, "/guides/a", &ask);
    assert!(cached(RequestHeaders::GET).is_none());
    let page = get(&served, "/guides/a");
    let first = cached(RequestHeaders::GET).unwrap();
    assert_eq!(first.response().body.memory(), page.body.memory());
    let mut etag = Vec::new();
    page.etag.unwrap().write(&mut etag);
    let given = |if_none_match, if_match| RequestHeaders {
        conditions: Conditions {
            if_none_match,
            if_match,
            ..Conditions::default()
        },
        ..RequestHeaders::GET
    };
    // The cached response serves each request, with any condition.
    for (ask, status) in [
        (RequestHeaders::GET, 200),
        (given(Some(&etag), None), 304),
        (given(None, Some(b"\"other\"")), 412),
        (given(None, Some(&etag)), 200),
    ] {
        let again = cached(ask).unwrap();
        assert_eq!(again.response().status, status, "{ask:?}");
        let made = response(&served, "/guides/a", &ask);
        let text = |response: &MaybeCached| {
            let mut head = Vec::new();
            response.write_head(&mut head, b"", Connection::Keep);
            String::from_utf8(head).unwrap()
        };
        let built = MaybeCached::Built(made);
        assert_eq!(text(&again), text(&built), "{ask:?}");
    }
    let is_kept = |ready: &MaybeCached| matches!(ready, MaybeCached::Cached(_));
    assert!(is_kept(&first) && is_kept(&cached(RequestHeaders::GET).unwrap()));
}

#[test]
fn a_page_that_does_not_fit_the_cache_is_read_each_time() {
    let served = served_from(Cache::new(0), &Service::default(), "");
    for _twice in 0..2 {
        let cached = respond_from_memory(&served, "/guides/a", &RequestHeaders::GET);
        assert!(cached.is_none());
        assert_eq!(get(&served, "/guides/a").status, 200);
        assert_eq!(get(&served, "/old/a").status, 308);
    }
}

#[test]
fn the_cached_response_depends_on_what_the_client_accepts() {
    let served = served("");
    let brotli = RequestHeaders {
        accept_encoding: Some(b"br"),
        ..RequestHeaders::GET
    };
    let markdown = RequestHeaders {
        accept: Some(b"text/markdown"),
        ..RequestHeaders::GET
    };
    for _twice in 0..2 {
        let both = RequestHeaders {
            accept: markdown.accept,
            ..brotli
        };
        for headers in [RequestHeaders::GET, brotli, markdown, both] {
            let waited = response(&served, "/guides/a", &headers);
            let cached = respond_from_memory(&served, "/guides/a", &headers).unwrap();
            let cached = cached.into_response();
            assert_eq!(cached.encoding, waited.encoding);
            assert_eq!(cached.media_type, waited.media_type);
            assert_eq!(cached.body.memory(), waited.body.memory());
        }
    }
}

#[test]
fn a_page_has_the_address_of_its_site_in_every_coding() {
    use std::io::Read as _;

    use crate::response::Encoding;

    for base in ["", "/docs"] {
        let site = served(base);
        let tag =
            format!("<meta property=\"og:url\" content=\"https://docs.acme.test{base}/guides/a\">");
        let mut whole = None;
        for (coding, encoding) in [
            ("br", Encoding::Brotli),
            ("gzip", Encoding::Gzip),
            ("identity", Encoding::Identity),
        ] {
            let headers = RequestHeaders {
                accept_encoding: Some(coding.as_bytes()),
                ..RequestHeaders::GET
            };
            let path = format!("{base}/guides/a");
            let response = response(&site, &path, &headers);
            assert_eq!(response.encoding, encoding);
            let bytes = response.body.memory().unwrap();
            let mut html = String::new();
            match coding {
                "br" => brotli::Decompressor::new(&bytes[..], 4096).read_to_string(&mut html),
                "gzip" => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut html),
                _ => (&bytes[..]).read_to_string(&mut html),
            }
            .unwrap();
            assert!(html.contains(&tag), "{coding} {html}");
            assert!(
                !html.contains(crate::discovery::BASE_URL_PLACEHOLDER),
                "{coding}"
            );
            let whole = whole.get_or_insert_with(|| html.clone());
            assert!(*whole == html, "{coding}");
        }
    }
}
