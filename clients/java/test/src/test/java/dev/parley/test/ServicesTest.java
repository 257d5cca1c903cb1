package dev.parley.test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parley.client.ParleyClient;
import dev.parley.client.ParleyException;
import dev.parley.client.RequestOptions;
import dev.parley.v1.Key;
import dev.parley.v1.KeyCapability;
import dev.parley.v1.ListModelsRequest;
import dev.parley.v1.Modality;
import dev.parley.v1.Model;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.reflection.v1.ServiceResponse;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class ServicesTest {
  private static final ParleyClient PARLEY = Gateway.connect();

  @AfterAll
  static void close() {
    PARLEY.close();
  }

  @Test
  void modelsAreListedAndGot() {
    List<Model> models = PARLEY.models().list();

    assertTrue(models.stream().anyMatch(model -> model.getId().equals("alpha-haiku-4.5")));
    assertEquals(models.get(0), PARLEY.models().get(models.get(0).getId()));
    var e = assertThrows(ParleyException.class, () -> PARLEY.models().get("no-such-model"));
    assertEquals("MODEL_NOT_FOUND", e.reason());
  }

  @Test
  void modelsAreListedByPages() {
    var request = ListModelsRequest.newBuilder().setPageSize(1).addOutputModalities(Modality.MODALITY_IMAGE);
    var first = PARLEY.models().list(request.build(), RequestOptions.DEFAULT);
    request.setPageToken(first.getNextPageToken());
    var second = PARLEY.models().list(request.build(), RequestOptions.DEFAULT);

    assertEquals(1, first.getModelsCount());
    assertEquals(1, second.getModelsCount());
    assertFalse(first.getModels(0).getId().equals(second.getModels(0).getId()));
  }

  @Test
  void keyTellsAboutItself() {
    Key key = PARLEY.key().get();

    assertTrue(key.getId().startsWith("key_"), key.getId());
    assertTrue(key.getCapabilitiesList().contains(KeyCapability.KEY_CAPABILITY_CHAT));
    assertFalse(key.toString().contains(Gateway.API_KEY));
  }

  @Test
  void channelServesHealth() {
    var health = HealthGrpc.newBlockingStub(PARLEY.channel());

    for (String service : List.of("", "parley.v1.CompletionService")) {
      var response = health.check(HealthCheckRequest.newBuilder().setService(service).build());
      assertEquals(ServingStatus.SERVING, response.getStatus());
    }
  }

  @Test
  void channelServesReflection() throws Exception {
    var listed = new CompletableFuture<ServerReflectionResponse>();
    var requests =
        ServerReflectionGrpc.newStub(PARLEY.channel())
            .serverReflectionInfo(
                new StreamObserver<>() {
                  @Override
                  public void onNext(ServerReflectionResponse response) {
                    listed.complete(response);
                  }

                  @Override
                  public void onError(Throwable error) {
                    listed.completeExceptionally(error);
                  }

                  @Override
                  public void onCompleted() {}
                });
    requests.onNext(ServerReflectionRequest.newBuilder().setListServices("").build());
    requests.onCompleted();

    var services = listed.get(30, TimeUnit.SECONDS).getListServicesResponse().getServiceList();
    List<String> names = services.stream().map(ServiceResponse::getName).toList();
    assertTrue(
        names.containsAll(
            List.of("parley.v1.CompletionService", "parley.v1.ModelService", "parley.v1.KeyService")),
        names.toString());
  }
}
