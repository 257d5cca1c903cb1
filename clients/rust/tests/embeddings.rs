//! Checks of embeddings against the gateway at `$PARLEY_GRPC`.

use std::env;

use parley_example::{
    connect_embeddings, reason, text_inputs,
    v1::{EmbeddingRequest, Embeddings, ErrorReason},
};
use tonic::{Code, Status};

const MODEL: &str = "gamma-embedding-3-small";

#[tokio::test]
async fn vectors() {
    let inputs = text_inputs(&["tide", "sea", "tide"]);
    let request = EmbeddingRequest { model: MODEL.into(), inputs, ..Default::default() };
    let made = create(request).await.unwrap();
    assert_eq!(made.model, MODEL);
    let [tide, sea, again] = &made.embeddings[..] else { panic!("not three vectors") };
    assert_eq!(tide.values.len(), sea.values.len());
    assert_eq!(tide, again);
    assert_ne!(tide, sea);
    assert!(made.usage.unwrap().input_tokens > 0);
    assert_eq!(made.report.unwrap().attempts.len(), 1);
}

#[tokio::test]
async fn length() {
    let request = EmbeddingRequest {
        model: MODEL.into(),
        inputs: text_inputs(&["tide"]),
        dimensions: Some(8),
        ..Default::default()
    };
    assert_eq!(create(request).await.unwrap().embeddings[0].values.len(), 8);
}

#[tokio::test]
async fn model_that_makes_none() {
    let model = "alpha-haiku-4.5".into();
    let request = EmbeddingRequest { model, inputs: text_inputs(&["tide"]), ..Default::default() };
    let status = create(request).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::InvalidArgument, ErrorReason::InvalidRequest));
}

async fn create(request: EmbeddingRequest) -> Result<Embeddings, Status> {
    let (address, key) = (env::var("PARLEY_GRPC").unwrap(), env::var("PARLEY_API_KEY").unwrap());
    Ok(connect_embeddings(&address, &key).unwrap().create(request).await?.into_inner())
}
