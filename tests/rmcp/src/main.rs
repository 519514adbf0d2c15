//! The MCP SDK for Rust, for the tests of the server.
//!
//! `rmcp-client ask initialize|discover URL HOST:ADDRESS` connects to a server, lists everything,
//! reads a skill and a page, calls every tool, and writes the results as JSON.
//!
//! `rmcp-client read` reads one message of a server from each line of its input, and writes it
//! again from the values of the SDK: what the SDK does not know would be lost.

use std::error::Error;
use std::io;

use rmcp::model::{
    CallToolRequestParams, ClientConfig, GetSkillRequestParams, JsonObject, ProtocolVersion,
    ReadResourceRequestParams, ServerJsonRpcMessage,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json, to_value};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["read"] => read(),
        ["ask", mode, url, host] => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let asked = runtime.block_on(ask(mode, url, host))?;
            println!("{asked}");
            Ok(())
        }
        _ => Err("usage: rmcp-client read | ask initialize|discover URL HOST:ADDRESS".into()),
    }
}

fn read() -> Result<()> {
    for line in io::stdin().lines() {
        let message: ServerJsonRpcMessage = serde_json::from_str(&line?)?;
        println!("{}", serde_json::to_string(&message)?);
    }
    Ok(())
}

async fn ask(mode: &str, url: &str, host: &str) -> Result<Value> {
    let (host, address) = host.split_once(':').ok_or("no address of the host")?;
    let http = reqwest::Client::builder()
        .resolve(host, address.parse()?)
        .build()?;
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let mode = match mode {
        "initialize" => ClientLifecycleMode::Initialize,
        _ => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let client = ClientConfig::default()
        .serve_with_lifecycle(transport, mode)
        .await?;
    let texts = |value: Value, member: &str| -> Vec<Value> {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| item[member].clone()).collect()
    };
    let info = client
        .peer_info()
        .ok_or("no information about the server")?;
    let info = to_value(&*info)?;
    let resources = texts(to_value(client.list_all_resources().await?)?, "uri");
    let last = resources.last().and_then(Value::as_str).unwrap_or_default();
    let text = async |uri: &str| -> Result<Value> {
        let read = client.read_resource(ReadResourceRequestParams::new(uri));
        Ok(to_value(read.await?)?["contents"][0]["text"].clone())
    };
    let call = async |name: &'static str, arguments: Value| -> Result<Value> {
        let Value::Object(arguments) = arguments else {
            return Err("arguments are an object".into());
        };
        let arguments: JsonObject = arguments;
        let called = CallToolRequestParams::new(name).with_arguments(arguments);
        Ok(to_value(client.call_tool(called).await?)?)
    };
    let unknown = ReadResourceRequestParams::new("skill://none/SKILL.md");
    let unknown = match client.read_resource(unknown).await {
        Err(ServiceError::McpError(error)) => Some(error.code.0),
        _ => None,
    };
    let fetched = call("fetch", json!({"id": "guides/start"})).await?;
    let fetched: Value =
        serde_json::from_str(fetched["content"][0]["text"].as_str().unwrap_or_default())?;
    let found = call("grep", json!({"pattern": "E1042"})).await?;
    let found = found["structuredContent"]["matches"]
        .as_array()
        .map(Vec::len);
    let skill = client
        .get_skill(GetSkillRequestParams::new("skill://sdk/SKILL.md"))
        .await;
    let asked = json!({
        "server": info["serverInfo"]["title"],
        "revision": info["protocolVersion"],
        "tools": texts(to_value(client.list_all_tools().await?)?, "name"),
        "resources": resources,
        "templates": texts(to_value(client.list_all_resource_templates().await?)?, "uriTemplate"),
        "unknown": unknown,
        "skill": text("skill://pay-refund/SKILL.md").await?,
        "page": text(last).await?,
        "fetched": fetched["title"],
        "listed": call("list_pages", json!({})).await?["structuredContent"]["total"],
        "found": found,
        "told": call("skill", json!({"name": "sdk"})).await?["content"][0]["text"],
        "wrong": call("grep", json!({"pattern": "("})).await?["isError"],
        "skills": texts(to_value(client.list_all_skills().await?)?, "uri"),
        "entry": to_value(skill?)?["skill"]["frontmatter"]["name"],
    });
    client.cancel().await?;
    Ok(asked)
}
