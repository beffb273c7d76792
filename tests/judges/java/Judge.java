import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** What classes of Kafka Connect make of many values or records, and what Kafka's consumer reads, in one call: JSON in, JSON out. */
public class Judge {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private final ObjectMapper mapper = new ObjectMapper();

    public String convert(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Object converter = Class.forName(asked.get("class").textValue()).newInstance();
        boolean isHeader = "header".equals(asked.get("role").textValue());
        Map config = config(asked);
        if (isHeader) {
            config.put("converter.type", "header");
            ((HeaderConverter) converter).configure(config);
        } else {
            ((Converter) converter).configure(config, "key".equals(asked.get("role").textValue()));
        }
        Schema schema = Reading.schema(asked.get("schema"));
        // Two of the same are not equal when a default holds bytes, so it must be the very schema.
        boolean isSame = asked.get("of").equals(asked.get("schema"));
        Schema of = isSame ? schema : Reading.schema(asked.get("of"));
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = asked.get("values").elements(); each.hasNext();) {
            JsonNode told = (JsonNode) each.next();
            try {
                Object value = Reading.value(of, told);
                byte[] made = isHeader
                    ? ((HeaderConverter) converter).fromConnectHeader("t", "h", schema, value)
                    : ((Converter) converter).fromConnectData("t", schema, value);
                answers.addObject().put("bytes", made);
            } catch (Exception refused) {
                answers.add(refusal(refused));
            }
        }
        return mapper.writeValueAsString(answers);
    }

    public String transform(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Transformation transformation =
            (Transformation) Class.forName(asked.get("class").textValue()).newInstance();
        transformation.configure(config(asked));
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = asked.get("records").elements(); each.hasNext();) {
            JsonNode told = (JsonNode) each.next();
            try {
                answers.add(told((SourceRecord) transformation.apply(record(told))));
            } catch (Exception refused) {
                answers.add(refusal(refused));
            }
        }
        transformation.close();
        return mapper.writeValueAsString(answers);
    }

    public String test(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Predicate predicate = (Predicate) Class.forName(asked.get("class").textValue()).newInstance();
        predicate.configure(config(asked));
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = asked.get("records").elements(); each.hasNext();) {
            answers.add(predicate.test(record((JsonNode) each.next())));
        }
        predicate.close();
        return mapper.writeValueAsString(answers);
    }

    /** All records of partition 0, up to the end that a reader of that isolation level has. */
    public String consume(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        KafkaConsumer consumer =
            new KafkaConsumer(config(asked), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        TopicPartition partition =
            new TopicPartition(asked.get("topic").textValue(), asked.get("partition").intValue());
        List partitions = Collections.singletonList(partition);
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        long end = ((Long) consumer.endOffsets(partitions).get(partition)).longValue();
        ArrayNode answers = NODES.arrayNode();
        while (consumer.position(partition) < end) {
            for (Iterator each = consumer.poll(Duration.ofSeconds(1)).iterator(); each.hasNext();) {
                answers.add(told((ConsumerRecord) each.next()));
            }
        }
        consumer.close();
        return mapper.writeValueAsString(answers);
    }

    /** What a group reads next of topics, up to the ends, or until it has as many records as asked for; committed. */
    public String readOn(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        KafkaConsumer consumer =
            new KafkaConsumer(config(asked), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List topics = new ArrayList();
        for (Iterator each = asked.get("topics").elements(); each.hasNext();) {
            topics.add(((JsonNode) each.next()).textValue());
        }
        consumer.subscribe(topics);
        ArrayNode answers = NODES.arrayNode();
        do {
            for (Iterator each = consumer.poll(Duration.ofMillis(200)).iterator(); each.hasNext();) {
                answers.add(told((ConsumerRecord) each.next()));
            }
        } while (answers.size() < asked.get("most").intValue() && !isThrough(consumer));
        consumer.commitSync();
        consumer.close();
        return mapper.writeValueAsString(answers);
    }

    private static boolean isThrough(KafkaConsumer consumer) {
        Map ends = consumer.endOffsets(consumer.assignment());
        for (Iterator each = ends.keySet().iterator(); each.hasNext();) {
            TopicPartition partition = (TopicPartition) each.next();
            if (consumer.position(partition) < ((Long) ends.get(partition)).longValue()) {
                return false;
            }
        }
        return !ends.isEmpty();
    }

    /** The records in batches as the broker keeps them, each batch checked as the broker checks it. */
    public String readBatches(String request) throws Exception {
        ByteBuffer data = ByteBuffer.wrap(mapper.readTree(request).get("data").binaryValue());
        ArrayNode answers = NODES.arrayNode();
        for (Iterator batches = MemoryRecords.readableRecords(data).batches().iterator(); batches.hasNext();) {
            RecordBatch batch = (RecordBatch) batches.next();
            batch.ensureValid();
            ObjectNode told = answers.addObject();
            told.put("compression", batch.compressionType().id);
            told.put("max_timestamp", batch.maxTimestamp());
            told.put("next_offset", batch.nextOffset());
            ArrayNode records = told.putArray("records");
            for (Iterator each = batch.iterator(); each.hasNext();) {
                Record record = (Record) each.next();
                record.ensureValid();
                records.add(told(new ConsumerRecord(
                    "", 0, record.offset(), record.timestamp(), batch.timestampType(), record.keySize(), record.valueSize(),
                    record.hasKey() ? Utils.toArray(record.key()) : null,
                    record.hasValue() ? Utils.toArray(record.value()) : null,
                    new RecordHeaders(record.headers()), Optional.empty())));
            }
        }
        return mapper.writeValueAsString(answers);
    }

    private static ObjectNode told(ConsumerRecord record) {
        ObjectNode told = NODES.objectNode();
        told.put("offset", record.offset());
        told.put("timestamp", record.timestamp());
        told.put("timestamp_type", record.timestampType().id);
        told.put("key", (byte[]) record.key());
        told.put("value", (byte[]) record.value());
        ArrayNode headers = told.putArray("headers");
        for (Iterator each = record.headers().iterator(); each.hasNext();) {
            org.apache.kafka.common.header.Header header =
                (org.apache.kafka.common.header.Header) each.next();
            headers.addObject().put("key", header.key()).put("value", header.value());
        }
        return told;
    }

    private static Map config(JsonNode asked) {
        Map config = new HashMap();
        for (Iterator each = asked.get("config").fields(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            config.put(entry.getKey(), ((JsonNode) entry.getValue()).textValue());
        }
        return config;
    }

    private static ObjectNode refusal(Exception refused) {
        return NODES.objectNode().put("refused", String.valueOf(refused.getMessage()));
    }

    /** What is told is built of the very schema that it is said to have, where the two are the same. */
    private static Object value(JsonNode told, Schema schema) {
        boolean isSame = told.get("of").equals(told.get("schema"));
        return Reading.value(isSame ? schema : Reading.schema(told.get("of")), told.get("value"));
    }

    private static SourceRecord record(JsonNode told) {
        ConnectHeaders headers = new ConnectHeaders();
        for (Iterator each = told.get("headers").elements(); each.hasNext();) {
            JsonNode header = (JsonNode) each.next();
            Schema schema = Reading.schema(header.get("schema"));
            headers.add(header.get("name").textValue(), value(header, schema), schema);
        }
        JsonNode key = told.get("key");
        JsonNode value = told.get("value");
        Integer partition = told.get("partition").isNull() ? null : Integer.valueOf(told.get("partition").asInt());
        Long timestamp = told.get("timestamp").isNull() ? null : Long.valueOf(told.get("timestamp").asLong());
        Schema keySchema = Reading.schema(key.get("schema"));
        Schema valueSchema = Reading.schema(value.get("schema"));
        return new SourceRecord(
            new HashMap(), new HashMap(), told.get("topic").textValue(), partition,
            keySchema, value(key, keySchema), valueSchema, value(value, valueSchema), timestamp, headers);
    }

    private static JsonNode told(SourceRecord record) {
        if (record == null) {
            return NODES.nullNode();
        }
        ObjectNode told = NODES.objectNode();
        told.put("topic", record.topic());
        told.put("partition", record.kafkaPartition());
        told.put("timestamp", record.timestamp());
        told.set("key", told(record.keySchema(), record.key()));
        told.set("value", told(record.valueSchema(), record.value()));
        ArrayNode headers = told.putArray("headers");
        for (Iterator each = record.headers().iterator(); each.hasNext();) {
            Header header = (Header) each.next();
            headers.add(told(header.schema(), header.value()).put("name", header.key()));
        }
        return told;
    }

    private static ObjectNode told(Schema schema, Object value) {
        ObjectNode told = NODES.objectNode();
        told.set("schema", Writing.schema(schema));
        told.set("value", Writing.value(value));
        return told;
    }
}
