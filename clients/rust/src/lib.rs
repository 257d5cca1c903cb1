//! Clients of Parley's completions and embeddings with an API key, over plaintext.

use prost::Message;
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt;

/// The code generated from the contract.
pub mod v1 {
    tonic::include_proto!("parley.v1");
}

use v1::{
    AttemptList, CompletionRequest, EmbeddingInput, ErrorReason, Part, Role,
    completion_service_client::CompletionServiceClient, embedding_input::Kind as InputKind,
    embedding_service_client::EmbeddingServiceClient, part::Kind,
};

/// The largest message that is received; a request says so in `max_response_bytes`.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Sends the key with every call.
#[derive(Clone)]
pub struct Key(MetadataValue<Ascii>);

impl Interceptor for Key {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

pub type Connection = InterceptedService<Channel, Key>;
pub type Completions = CompletionServiceClient<Connection>;
pub type Embeddings = EmbeddingServiceClient<Connection>;

/// Connects to the completions of Parley at `host:port` with the first call.
pub fn connect(address: &str, api_key: &str) -> Result<Completions, Box<dyn std::error::Error>> {
    let connection = connection(address, api_key)?;
    Ok(CompletionServiceClient::new(connection).max_decoding_message_size(MAX_RESPONSE_BYTES))
}

/// Connects to the embeddings of Parley at `host:port` with the first call.
pub fn connect_embeddings(address: &str, api_key: &str) -> Result<Embeddings, Box<dyn std::error::Error>> {
    let connection = connection(address, api_key)?;
    Ok(EmbeddingServiceClient::new(connection).max_decoding_message_size(MAX_RESPONSE_BYTES))
}

fn connection(address: &str, api_key: &str) -> Result<Connection, Box<dyn std::error::Error>> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
    let mut authorization: MetadataValue<Ascii> = format!("Bearer {api_key}").parse()?;
    authorization.set_sensitive(true);
    Ok(InterceptedService::new(channel, Key(authorization)))
}

/// A request with one message of the user.
pub fn ask(model: &str, question: &str) -> CompletionRequest {
    CompletionRequest {
        model: model.into(),
        messages: vec![message(Role::User, Kind::Text(question.into()))],
        max_response_bytes: Some(MAX_RESPONSE_BYTES as i32),
        ..Default::default()
    }
}

/// A message of one part.
pub fn message(role: Role, kind: Kind) -> v1::Message {
    let part = Part { kind: Some(kind), ..Default::default() };
    v1::Message { role: role.into(), parts: vec![part], ..Default::default() }
}

/// Texts as the inputs of an embedding request.
pub fn text_inputs(texts: &[&str]) -> Vec<EmbeddingInput> {
    texts.iter().map(|text| EmbeddingInput { kind: Some(InputKind::Text(text.to_string())) }).collect()
}

/// The gateway's reason for a failure: `Unspecified` when the failure is not the gateway's, and for a reason of a later
/// version, whose name is in `ErrorInfo`.
pub fn reason(status: &Status) -> ErrorReason {
    let name = status.get_details_error_info().map(|info| format!("ERROR_REASON_{}", info.reason));
    name.and_then(|name| ErrorReason::from_str_name(&name)).unwrap_or_default()
}

/// The upstream models that were tried before a call failed. `tonic_types::StatusExt` reads the other details.
pub fn attempts(status: &Status) -> Vec<v1::Attempt> {
    let details = tonic_types::pb::Status::decode(status.details()).unwrap_or_default().details;
    let list = details.iter().find(|detail| detail.type_url.ends_with("/parley.v1.AttemptList"));
    list.and_then(|detail| AttemptList::decode(&detail.value[..]).ok()).unwrap_or_default().attempts
}
