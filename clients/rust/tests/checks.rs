//! Checks of generated code against the gateway at `$PARLEY_GRPC`.

use std::{
    env,
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use parley_example::{
    Completions, ask, attempts, connect, message, reason,
    v1::{
        AttemptOutcome, Completion, CompletionRequest, ErrorReason, FinishReason, FunctionTool, Role, Tool, ToolCall,
        ToolChoice, ToolResult, completion_chunk::Event, part::Kind, part_delta::Content, tool, tool_choice::Choice,
    },
};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

#[tokio::test]
async fn unary() {
    let completion = create(ask("alpha-haiku-4.5", "Tell me about tides.")).await.unwrap();
    assert_eq!(completion.model, "alpha-haiku-4.5");
    assert!(!text(&completion).is_empty());
    assert_eq!(completion.choices[0].finish_reason(), FinishReason::Stop);
    assert!(completion.usage.unwrap().output_tokens > 0);
    assert_eq!(completion.report.unwrap().attempts[0].outcome(), AttemptOutcome::Served);
}

#[tokio::test]
async fn metadata() {
    let mut request = Request::new(ask("alpha-haiku-4.5", "Hello"));
    request.metadata_mut().insert("x-request-id", "rust-metadata".parse().unwrap());
    let response = parley().create(request).await.unwrap();
    assert_eq!(response.metadata().get("x-request-id").unwrap(), "rust-metadata");
    assert_eq!(response.metadata().get("parley-served-model").unwrap(), "alpha-haiku-4.5");
    assert_eq!(response.metadata().get("parley-attempts").unwrap(), "1");
}

#[tokio::test]
async fn stream_grammar() {
    let request = ask("alpha-haiku-4.5", "Tell me about tides.");
    let mut stream = parley().stream(request.clone()).await.unwrap().into_inner();
    let (mut grammar, mut answer) = (Vec::new(), String::new());
    while let Some(chunk) = stream.message().await.unwrap() {
        let event = match chunk.event.unwrap() {
            Event::Start(_) => "start",
            Event::PartStart(_) => "part_start",
            Event::PartDelta(delta) => {
                if let Some(Content::Text(text)) = delta.content {
                    answer += &text;
                }
                "part_delta"
            }
            Event::PartFinish(_) => "part_finish",
            Event::ChoiceFinish(_) => "choice_finish",
            Event::Usage(_) => "usage",
            Event::Report(_) => "report",
            Event::NativeEvent(_) => "native_event",
            Event::PartialImage(_) => "partial_image",
        };
        grammar.push(event);
    }
    grammar.dedup();
    let expected = ["start", "part_start", "part_delta", "part_finish", "choice_finish", "usage", "report"];
    assert_eq!(grammar, expected);
    assert_eq!(answer, text(&create(request).await.unwrap()));
}

#[tokio::test]
async fn tool_round_trip() {
    let function = FunctionTool { name: "get_weather".into(), ..Default::default() };
    let mut request = ask("beta-3-flash", "What is the weather in Bergen?");
    request.tools = vec![Tool { kind: Some(tool::Kind::Function(function)), ..Default::default() }];
    request.tool_choice = Some(ToolChoice { choice: Some(Choice::Function("get_weather".into())) });
    let asked = create(request.clone()).await.unwrap().choices.remove(0);
    assert_eq!(asked.finish_reason(), FinishReason::ToolCalls);
    let answer = asked.message.unwrap();
    let calls = answer.parts.iter().filter_map(|part| match &part.kind {
        Some(Kind::ToolCall(call)) => Some(call.clone()),
        _ => None,
    });
    let [ToolCall { id, name, .. }] = &calls.collect::<Vec<_>>()[..] else { panic!("not one call") };
    assert_eq!(name, "get_weather");

    let parts = message(Role::Tool, Kind::Text("{\"celsius\":12}".into())).parts;
    let result = ToolResult { tool_call_id: id.clone(), parts, ..Default::default() };
    request.messages.extend([answer, message(Role::Tool, Kind::ToolResult(result))]);
    request.tool_choice = None;
    let answered = create(request).await.unwrap();
    assert_eq!(answered.choices[0].finish_reason(), FinishReason::Stop);
    assert!(!text(&answered).is_empty());
}

#[tokio::test]
async fn bad_request() {
    let request = CompletionRequest { temperature: Some(9.0), ..ask("alpha-haiku-4.5", "Hello") };
    let status = create(request).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::InvalidArgument, ErrorReason::InvalidRequest));
    let violations = status.get_details_bad_request().unwrap().field_violations;
    assert_eq!(violations[0].field, "temperature");
}

#[tokio::test]
async fn unauthenticated() {
    let mut parley = connect(&variable("PARLEY_GRPC"), "sk_parley_wrong").unwrap();
    assert!(!format!("{parley:?}").contains("sk_parley_wrong"));
    let status = parley.create(ask("alpha-haiku-4.5", "Hello")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::Unauthenticated, ErrorReason::Unauthenticated));
}

#[tokio::test]
async fn model_not_found() {
    let status = create(ask("no-such-model", "Hello")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::NotFound, ErrorReason::ModelNotFound));
    assert!(status.message().contains("no-such-model"));
}

#[tokio::test]
async fn attempts_and_retry_info() {
    let status = create(ask("overloaded", "Hello")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::Unavailable, ErrorReason::UpstreamUnavailable));
    let attempt = &attempts(&status)[0];
    assert_eq!((attempt.model.as_str(), attempt.http_status_code), ("overloaded", Some(503)));
    let retry = status.get_details_retry_info().unwrap();
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(7)));
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "7000");
}

#[tokio::test]
async fn fallback() {
    let fallback_models = vec!["spare".into()];
    let request = CompletionRequest { fallback_models, ..ask("overloaded", "Hello") };
    let completion = create(request).await.unwrap();
    assert_eq!(completion.model, "spare");
    assert_eq!(text(&completion), "From the spare model.");
    assert_eq!(completion.report.unwrap().attempts[0].failure_reason(), ErrorReason::UpstreamUnavailable);
}

#[tokio::test]
async fn deadline() {
    let before = upstream_calls("silent").len();
    let mut request = Request::new(ask("silent", "Hello"));
    request.set_timeout(Duration::from_millis(300));
    let start = Instant::now();
    let status = parley().create(request).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(2));
    // tonic's own timer, which may be first, ends a call with CANCELLED.
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status:?}");
    while upstream_calls("silent")[before..] != ["closed"] {
        assert!(start.elapsed() < Duration::from_millis(2300), "the upstream call is not closed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn parley() -> Completions {
    connect(&variable("PARLEY_GRPC"), &variable("PARLEY_API_KEY")).unwrap()
}

async fn create(request: CompletionRequest) -> Result<Completion, Status> {
    Ok(parley().create(request).await?.into_inner())
}

fn text(completion: &Completion) -> String {
    let parts = &completion.choices[0].message.as_ref().unwrap().parts;
    let texts = parts.iter().filter_map(|part| match &part.kind {
        Some(Kind::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The states of a model's upstream calls: open, answered, closed.
fn upstream_calls(model: &str) -> Vec<String> {
    let address = variable("PARLEY_UPSTREAM").replace("http://", "");
    let mut connection = TcpStream::connect(&address).unwrap();
    write!(connection, "GET /calls/{model} HTTP/1.0\r\n\r\n").unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    let json = response.rsplit("\r\n").next().unwrap();
    json.split('"').filter(|state| state.chars().all(char::is_alphabetic)).map(String::from).collect()
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}
