//! A server with the tools, resources and prompts that the official conformance suite calls.
//!
//! It is made of the parts of a site's server: the rules of the transport
//! ([`waypost::mcp::transport`]), messages, eras and answers ([`waypost::mcp::respond`]), and the
//! writer of responses. Only the methods are its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use waypost::mcp::{
    Era, Methods, Outcome, REVISIONS, Rejection, Request, negotiated, respond, transport,
};
use waypost::response::{
    Connection, MaybeCached, McpFields, Problem, RequestHeaders, Response, date,
};

/// A PNG of one red pixel, in Base64.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
/// A WAV without samples, in Base64.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// A request needs a capability that the client has not declared (2026-07-28, `basic`).
const MISSING_CAPABILITY: i32 = -32021;

/// The methods of the server.
struct Fixture;

impl Methods for Fixture {
    fn information(&self) -> String {
        json!({"name": "fixture", "version": "1"}).to_string()
    }

    fn result(&self, request: &Request<'_>) -> Result<Outcome, Rejection> {
        let capabilities = json!({
            "tools": {}, "resources": {}, "prompts": {}, "completions": {},
        });
        let text = |name: &str| {
            let value = request.params.get(name).and_then(Value::as_str);
            value.ok_or_else(|| Rejection::invalid(format!("`{name}` is missing")))
        };
        match (request.era, request.method) {
            (Era::Handshake, "initialize") => Ok(once(json!({
                "protocolVersion": negotiated(text("protocolVersion")?),
                "capabilities": capabilities,
                "serverInfo": {"name": "fixture", "version": "1"},
            }))),
            (Era::Handshake, "ping") => Ok(once(json!({}))),
            (Era::Stateless, "server/discover") => Ok(kept(json!({
                "supportedVersions": REVISIONS, "capabilities": capabilities,
            }))),
            (_, "tools/list") => Ok(kept(json!({"tools": tools()}))),
            (_, "tools/call") => called(text("name")?),
            (_, "resources/list") => Ok(kept(json!({"resources": [
                {"uri": "test://static-text", "name": "text", "description": "A text.", "mimeType": "text/plain"},
                {"uri": "test://static-binary", "name": "image", "description": "An image.", "mimeType": "image/png"},
            ]}))),
            (_, "resources/templates/list") => Ok(kept(json!({"resourceTemplates": [
                {"uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json"},
            ]}))),
            (_, "resources/read") => read(text("uri")?),
            (_, "prompts/list") => Ok(kept(json!({"prompts": prompts()}))),
            (_, "prompts/get") => prompt(text("name")?, request.params),
            (_, "completion/complete") => Ok(once(json!({
                "completion": {"values": ["testing"], "total": 1, "hasMore": false},
            }))),
            (era, method) => Err(Rejection::unknown_method(era, method)),
        }
    }
}

/// Returns the members of an object, as a result has them.
fn members(object: &Value) -> String {
    let text = object.to_string();
    text[1..text.len() - 1].to_owned()
}

fn once(object: Value) -> Outcome {
    Outcome::Once(members(&object))
}

fn kept(object: Value) -> Outcome {
    Outcome::Cacheable(members(&object))
}

/// The tools, by name.
fn tools() -> Vec<Value> {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_logging_tool",
        "test_missing_capability",
        "test_streaming_elicitation",
    ];
    let tool = |name: &str| {
        json!({
            "name": name, "description": "A tool of the suite.",
            "inputSchema": {"type": "object", "properties": {}},
        })
    };
    let mut tools: Vec<Value> = plain.into_iter().map(tool).collect();
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "A tool with many keywords of JSON Schema.",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef", "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}},
                "required": ["contactMethod"],
            },
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        },
    }));
    tools
}

fn called(name: &str) -> Result<Outcome, Rejection> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => json!([{"type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        }}]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            {"type": "resource", "resource": {
                "uri": "test://mixed-content-resource", "mimeType": "application/json",
                "text": "{\"test\":\"data\",\"value\":123}",
            }},
        ]),
        "test_error_handling" => {
            let text = text("This tool intentionally returns an error for testing");
            return Ok(once(json!({"content": [text], "isError": true})));
        }
        // A server without streams can send neither a log message nor a request of its own.
        "test_logging_tool" | "test_streaming_elicitation" => json!([text("Done.")]),
        "test_missing_capability" => {
            return Err(Rejection::Error {
                status: 400,
                code: MISSING_CAPABILITY,
                message: "Missing required client capability".to_owned(),
                data: Some(json!({"requiredCapabilities": {"sampling": {}}})),
            });
        }
        _ => return Err(Rejection::invalid(format!("Unknown tool: {name}"))),
    };
    Ok(once(json!({"content": content, "isError": false})))
}

fn read(uri: &str) -> Result<Outcome, Rejection> {
    let template = uri.strip_prefix("test://template/");
    let id = template.and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text", _) => json!({
            "uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }),
        ("test://static-binary", _) => json!({
            "uri": uri, "mimeType": "image/png", "blob": PNG,
        }),
        (_, Some(id)) => json!({
            "uri": uri, "mimeType": "application/json",
            "text": json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string(),
        }),
        _ => return Err(Rejection::invalid("Resource not found")),
    };
    Ok(kept(json!({"contents": [content]})))
}

fn prompts() -> Value {
    let argument = |name: &str| json!({"name": name, "description": "A text.", "required": true});
    json!([
        {"name": "test_simple_prompt", "description": "A prompt."},
        {
            "name": "test_prompt_with_arguments", "description": "A prompt.",
            "arguments": [argument("arg1"), argument("arg2")],
        },
        {
            "name": "test_prompt_with_embedded_resource", "description": "A prompt.",
            "arguments": [argument("resourceUri")],
        },
        {"name": "test_prompt_with_image", "description": "A prompt."},
    ])
}

fn prompt(name: &str, params: &Map<String, Value>) -> Result<Outcome, Rejection> {
    let argument = |name: &str| {
        let value = params.get("arguments").and_then(|all| all[name].as_str());
        value.ok_or_else(|| Rejection::invalid(format!("The argument `{name}` is missing.")))
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let contents = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![text(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1")?,
            argument("arg2")?
        ))],
        "test_prompt_with_embedded_resource" => vec![
            json!({"type": "resource", "resource": {
                "uri": argument("resourceUri")?, "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ],
        _ => return Err(Rejection::invalid(format!("Unknown prompt: {name}"))),
    };
    let message = |content: Value| json!({"role": "user", "content": content});
    let messages: Vec<Value> = contents.into_iter().map(message).collect();
    Ok(once(json!({"messages": messages})))
}

/// Serves the fixture on loopback until the process ends; returns its address.
pub(super) fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || serve_connection(&socket));
        }
    });
    address
}

/// Answers the requests of a connection. Ends it when the client does, or sends no valid request.
fn serve_connection(mut socket: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(socket);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let field = |wanted: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            let line = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            line.map(|(_, value)| value.trim())
        };
        let length = field("content-length").and_then(|length| length.parse::<u64>().ok());
        let mut body = vec![0; usize::try_from(length.unwrap_or_default()).ok()?];
        reader.read_exact(&mut body).ok()?;
        let bytes = |name: &str| field(name).map(str::as_bytes);
        let mcp = McpFields {
            version: bytes("mcp-protocol-version"),
            method: bytes("mcp-method"),
            name: bytes("mcp-name"),
        };
        let mut words = head.split(' ');
        let headers = RequestHeaders {
            method: words.next()?,
            path: words.next()?,
            host: field("host")?,
            origin: bytes("origin"),
            content_type: bytes("content-type"),
            mcp,
            ..RequestHeaders::default()
        };
        let response = if headers.path == "/mcp" {
            transport::reject(&headers, length).unwrap_or_else(|| {
                let answer = respond(&Fixture, &headers.mcp, &body);
                transport::response(answer.expect("nothing blocks"))
            })
        } else {
            Problem::new(404, "there is only /mcp").response()
        };
        socket.write_all(&written(response)).ok()?;
    }
}

fn written(response: Response) -> Vec<u8> {
    let body = response.body.memory().cloned().unwrap_or_else(Bytes::new);
    let mut out = Vec::new();
    let head = MaybeCached::Built(response);
    head.write_head(&mut out, &date(0), Connection::Keep);
    out.extend_from_slice(&body);
    out
}
